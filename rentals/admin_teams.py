"""Members, invitations and policies for staff, who look at them; what they may change, the organization reads."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from rentals.admin_forms import MembershipForm, MembershipFormSet
from rentals.admin_read_only import ReadOnly
from rentals.audit import name_of, record
from rentals.leaving import settle
from rentals.models import Invitation, Membership, Organization, OrganizationPolicy


class MembershipInline(admin.TabularInline):
    model = Membership
    form = MembershipForm
    formset = MembershipFormSet
    fields = ["user", "role", "made"]
    autocomplete_fields = ["user"]
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        # The first owner of an organization that staff make; whoever comes later is invited and says yes.
        return obj is None and super().has_add_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> list[str]:
        return ["user"] if obj else []


class RecordsMembers(admin.ModelAdmin):
    """An organization's members as staff change them: under the lock and in the trail that the members' page has."""

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        organization, actor, now = form.instance, cast(User, request.user), timezone.now()
        with transaction.atomic():
            Organization.objects.select_for_update(no_key=True).get(pk=organization.pk)
            before = dict(Membership.objects.for_organization(organization).values_list("user_id", "role"))
            told = {
                each.instance.user_id: settle(each.left(), organization, each.fates, actor=actor, via="staff", now=now)
                for each in formset.initial_forms
            }
            super().save_formset(request, form, formset, change)
            acts = [("removed", member) for member in formset.deleted_objects]
            acts += [("role_changed", member) for member, _ in formset.changed_objects]
            acts += [("added", member) for member in formset.new_objects]
            for act, member in acts:
                record(organization, f"member.{act}", at=now, actor=actor, via="staff", object_id=member.user_id,
                       member=name_of(member.user), before=before.get(member.user_id), role=member.role,
                       **told.get(member.user_id, {}))  # fmt: skip
            if not Membership.objects.for_organization(organization).filter(role="owner").exists():
                # The other owner went since the form was checked: this change goes back, not the last owner away.
                transaction.set_rollback(True)
                messages.error(request, "An organization keeps at least one owner. The members were not changed.")


@admin.register(Invitation)
class InvitationAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["email", "organization", "role", "invited_by_name", "expires_at", "accepted_at", "revoked_at"]
    list_filter = ["role"]
    search_fields = ["email", "organization__name", "organization__slug"]
    list_select_related = ["organization"]
    exclude = ["token_hash"]


@admin.register(OrganizationPolicy)
class OrganizationPolicyAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["organization", "tiers", "countries", "max_order_usd", "max_month_usd", "order_role", "changed_at"]
    search_fields = ["organization__name", "organization__slug"]
    list_select_related = ["organization"]

"""What a key may read of itself and of its organization."""

from __future__ import annotations

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from catalog.api_queries import ListQuery, refuse_parameters
from catalog.api_schemas import PAGING, answers
from rentals.api import schemas
from rentals.api.views import TenantView
from rentals.authentication import HasKey, KeyRequest, MayRead
from rentals.documents import (
    event_document,
    key_document,
    member_document,
    organization_document,
    policy_document,
    usage_document,
)
from rentals.models import AuditEvent, Membership
from rentals.policies import policy_of
from rentals.statements import month_of, read_month, statement


class KeyView(TenantView):
    """The key that asks, whatever its scopes."""

    key = HasKey

    @extend_schema(operation_id="get_key", responses=answers(schemas.Key))
    def get(self, request: KeyRequest) -> Response:
        refuse_parameters(request)
        return Response(key_document(request.auth))


class OrganizationView(TenantView):
    """The organization of the key."""

    key = MayRead

    @extend_schema(operation_id="get_organization", responses=answers(schemas.Organization, 403))
    def get(self, request: KeyRequest) -> Response:
        refuse_parameters(request)
        return Response(organization_document(request.organization))


class PolicyView(TenantView):
    """The rules of the organization's policy; null allows everything. It is changed on its page."""

    key = MayRead

    @extend_schema(operation_id="get_policy", responses=answers(schemas.Policy, 403))
    def get(self, request: KeyRequest) -> Response:
        refuse_parameters(request)
        organization, now = request.organization, timezone.now()
        return Response(policy_document(policy_of(organization), organization, now=now))


class UsageView(TenantView):
    """What was ordered and credited in one calendar month in UTC, as the monthly statement has it.

    An order counts in the month it was placed, a credit in the month it was given.
    """

    key = MayRead

    @extend_schema(operation_id="get_usage", parameters=[schemas.MONTH], responses=answers(schemas.Usage, 403))
    def get(self, request: KeyRequest) -> Response:
        query, now = ListQuery(request, ("month",), paged=False), timezone.now()
        month = month_of(now)
        if (text := request.query_params.get("month")) is not None:
            read = read_month(text)
            if read is None:
                query.refuse("month", "“month” must be a month in UTC such as 2026-11.")
            month = read or month
        query.raise_errors()
        return Response(usage_document(statement(request.organization, month, now=now)))


class MembersView(TenantView):
    """The members of the organization, the longest first."""

    key = MayRead

    @extend_schema(operation_id="list_members", parameters=PAGING, responses=answers(schemas.MemberList, 403))
    def get(self, request: KeyRequest) -> Response:
        rows = Membership.objects.for_organization(request.organization).select_related("user", "organization")
        return ListQuery(request).respond(rows, ("id",), member_document, name="members")


class AuditView(TenantView):
    """What was done in the organization, by whom and from where; the latest first."""

    key = MayRead

    @extend_schema(operation_id="list_audit_events", parameters=PAGING, responses=answers(schemas.AuditEventList, 403))
    def get(self, request: KeyRequest) -> Response:
        rows = AuditEvent.objects.for_organization(request.organization).select_related("organization")
        return ListQuery(request).respond(rows, ("-at", "-id"), event_document, name="audit")

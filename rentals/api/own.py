"""What a key may read of itself and of its organization."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from catalog.api_queries import ListQuery, refuse_parameters
from catalog.api_schemas import PAGING, answers
from rentals.api import schemas
from rentals.api.views import TenantView
from rentals.authentication import HasKey, KeyRequest, MayRead
from rentals.documents import event_document, key_document, member_document, organization_document
from rentals.models import AuditEvent, Membership


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
        rows = AuditEvent.objects.for_organization(request.organization)
        return ListQuery(request).respond(rows, ("-at", "-id"), event_document, name="audit")

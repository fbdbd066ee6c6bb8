"""The SSH public keys of an organization: the ones that are put on its lots."""

from __future__ import annotations

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from catalog.api_queries import ListQuery, refuse_parameters
from catalog.api_schemas import PAGING, answers
from rentals import ssh_keys as acts
from rentals.api import kept_schemas as schemas
from rentals.api.bodies import read_fields, refuse_body
from rentals.api.views import TenantView, or_404
from rentals.authentication import KeyRequest, MayOrder, MayRead
from rentals.errors import SshKeyThere
from rentals.kept_documents import ssh_key_document
from rentals.models import SshKey
from sizing.json_input import TEXT


class SshKeysView(TenantView):
    """The organization's SSH public keys."""

    key = MayRead
    key_for = {"POST": MayOrder}

    @extend_schema(operation_id="list_ssh_keys", parameters=PAGING, responses=answers(schemas.SshKeyList, 403))
    def get(self, request: KeyRequest) -> Response:
        """SSH public keys, the one added first at the head."""
        rows = SshKey.objects.for_organization(request.organization).select_related("organization")
        return ListQuery(request).respond(rows, ("added_at", "id"), ssh_key_document, name="ssh-keys")

    @extend_schema(
        operation_id="add_ssh_key",
        request=schemas.SshKeyRequest,
        responses={200: schemas.SshKey, **answers(schemas.SshKey, 403, 409, status=201, body=True)},
    )
    def post(self, request: KeyRequest) -> Response:
        """Add a public key. One that is there already is answered with 200 as it is kept, so repeating is safe."""
        refuse_parameters(request)
        body = read_fields(request.data, {"key": TEXT, "name": TEXT}, required=("key",))
        read = acts.read_key(body["key"], name=body.get("name") or "")
        status = 201
        try:
            key = acts.add_key(request.auth, read, now=timezone.now())
        except SshKeyThere as there:
            key, status = there.existing, 200
        location = {"Location": reverse("api-ssh-key", args=[key.pk])}
        return Response(ssh_key_document(key), status=status, headers=location)


class SshKeyView(TenantView):
    """One SSH public key of the organization."""

    key = MayRead
    key_for = {"DELETE": MayOrder}

    @extend_schema(operation_id="get_ssh_key", responses=answers(schemas.SshKey, 403, 404))
    def get(self, request: KeyRequest, ssh_key_id: int) -> Response:
        refuse_parameters(request)
        rows = SshKey.objects.for_organization(request.organization).select_related("organization")
        with or_404():
            return Response(ssh_key_document(rows.get(pk=ssh_key_id)))

    @extend_schema(
        operation_id="remove_ssh_key", request=None, responses=answers(None, 403, 404, status=204, body=True)
    )
    def delete(self, request: KeyRequest, ssh_key_id: int) -> Response:
        """Take a key off the list. Lots that have it already keep it."""
        refuse_parameters(request)
        refuse_body(request.data)
        with or_404():
            acts.remove_key(request.auth, ssh_key_id, now=timezone.now())
        return Response(status=204)

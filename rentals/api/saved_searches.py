"""The searches that an organization keeps: questions of POST /recommendations that are asked again and again."""

from __future__ import annotations

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from catalog.api_queries import ListQuery, refuse_parameters
from catalog.api_schemas import PAGING, answers
from rentals import saved_searches as acts
from rentals.api import kept_schemas as schemas
from rentals.api.bodies import read_search, refuse_body
from rentals.api.views import TenantView, or_404
from rentals.authentication import KeyRequest, MayOrder, MayRead
from rentals.errors import SearchThere
from rentals.kept_documents import search_document
from rentals.models import SavedSearch
from rentals.own_models import shapes_of


class SavedSearchesView(TenantView):
    """The organization's saved searches."""

    key = MayRead
    key_for = {"POST": MayOrder}

    @extend_schema(
        operation_id="list_saved_searches", parameters=PAGING, responses=answers(schemas.SavedSearchList, 403)
    )
    def get(self, request: KeyRequest) -> Response:
        """Saved searches, the one saved first at the head."""
        rows = SavedSearch.objects.for_organization(request.organization).select_related("organization")
        return ListQuery(request).respond(rows, ("created_at", "id"), search_document, name="saved-searches")

    @extend_schema(
        operation_id="save_search",
        request=schemas.SavedSearchRequest,
        responses={200: schemas.SavedSearch, **answers(schemas.SavedSearch, 403, 409, status=201, body=True)},
    )
    def post(self, request: KeyRequest) -> Response:
        """Save a question under a name. What answers it now is no news; what appears later is told.

        The same question under the same name again is answered with 200 as it is kept, so repeating is safe; another
        question under that name is 409 `already_exists`.
        """
        refuse_parameters(request)
        name, query = read_search(request.data, own_models=shapes_of(request.organization))
        status = 201
        try:
            search = acts.save_search(request.auth, name=name, query=query, now=timezone.now())
        except SearchThere as there:
            if there.existing.query != query:
                raise
            search, status = there.existing, 200
        location = {"Location": reverse("api-saved-search", args=[search.pk])}
        return Response(search_document(search), status=status, headers=location)


class SavedSearchView(TenantView):
    """One saved search of the organization."""

    key = MayRead
    key_for = {"DELETE": MayOrder}

    @extend_schema(operation_id="get_saved_search", responses=answers(schemas.SavedSearch, 403, 404))
    def get(self, request: KeyRequest, search_id: int) -> Response:
        refuse_parameters(request)
        rows = SavedSearch.objects.for_organization(request.organization).select_related("organization")
        with or_404():
            return Response(search_document(rows.get(pk=search_id)))

    @extend_schema(
        operation_id="delete_saved_search", request=None, responses=answers(None, 403, 404, status=204, body=True)
    )
    def delete(self, request: KeyRequest, search_id: int) -> Response:
        """Delete a search. Nobody is told of it any more."""
        refuse_parameters(request)
        refuse_body(request.data)
        with or_404():
            acts.delete_search(request.auth, search_id, now=timezone.now())
        return Response(status=204)

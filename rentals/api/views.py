"""What every address of a tenant's API has in common."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, cast

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from catalog.api_view import ApiView
from rentals.authentication import HasKey, KeyRequest
from rentals.models import Organization
from rentals.tenants import finished, tenant


@contextmanager
def or_404() -> Iterator[None]:
    """What is not there, or another organization's, does not exist."""
    try:
        yield
    except ObjectDoesNotExist:
        raise Http404 from None


class OpenedView(ApiView):
    """An address that anybody may use. With a key it works for `request.organization`, in a `tenant` block.

    Methods that `opens_transactions` names open their blocks themselves, because they place orders.
    """

    opens_transactions: ClassVar[tuple[str, ...]] = ()

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        with ExitStack() as self._block:
            return finished(super().dispatch(request, *args, **kwargs))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Who asks is known only now: no earlier place could open the block."""
        super().initial(request, *args, **kwargs)
        if request.auth is None:
            return
        opened = cast(KeyRequest, request)
        # Its number is known, and mostly enough; the rest is read by whoever asks for it, inside of a block.
        number = opened.auth.organization_id
        opened.organization = opened.auth.organization = Organization.from_db(None, ["id"], [number])
        if request.method not in self.opens_transactions:
            self._block.enter_context(tenant(number))


class TenantView(OpenedView):
    """An address that only a key opens. `key` is told for every method that `key_for` does not name."""

    key: ClassVar[type[HasKey]] = HasKey
    key_for: ClassVar[dict[str, type[HasKey]]] = {}

    def get_permissions(self) -> list[BasePermission]:
        return [self.key_for.get(self.request.method or "", self.key)()]

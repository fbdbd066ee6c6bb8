"""What every address of a tenant's API has in common."""

from typing import ClassVar

from rest_framework.permissions import BasePermission
from rest_framework.views import APIView

from rentals.authentication import HasKey


class TenantView(APIView):
    """An address that only a key opens. What it reads starts from `request.organization`, the key's own.

    `key` is told for every method that `key_for` does not name.
    """

    key: ClassVar[type[HasKey]] = HasKey
    key_for: ClassVar[dict[str, type[HasKey]]] = {}

    def get_permissions(self) -> list[BasePermission]:
        return [self.key_for.get(self.request.method or "", self.key)()]

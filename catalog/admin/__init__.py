"""What staff keep of the catalog. The admin edits, it does not decide: rules are in the models, checks and stock."""

from catalog.admin.machines import MachineAdmin
from catalog.admin.products import GpuAdmin, OptionAdmin, PlaceAliasAdmin
from catalog.admin.providers import ProviderAdmin

__all__ = ["GpuAdmin", "MachineAdmin", "OptionAdmin", "PlaceAliasAdmin", "ProviderAdmin"]

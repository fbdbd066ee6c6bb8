"""What staff keep of the catalog. The admin edits, it does not decide: rules are in the models, checks and stock."""

from catalog.admin.feeds import FeedRunAdmin
from catalog.admin.machines import MachineAdmin
from catalog.admin.products import GpuAdmin, GpuAliasAdmin, OptionAdmin, PlaceAliasAdmin
from catalog.admin.providers import ProviderAdmin
from catalog.admin.questions import FeedQuestionAdmin

__all__ = [
    "FeedQuestionAdmin",
    "FeedRunAdmin",
    "GpuAdmin",
    "GpuAliasAdmin",
    "MachineAdmin",
    "OptionAdmin",
    "PlaceAliasAdmin",
    "ProviderAdmin",
]

"""Who made what an organization has, and what became of them since: a word behind their names in lists."""

from __future__ import annotations

from rentals.models import Membership, Organization


class Makers:
    """The organization's members, read once for a list.

    `roles`: those in which such a thing can be made; without them every member counts as before.
    """

    def __init__(self, organization: Organization, *, roles: tuple[str, ...] = ()) -> None:
        members = Membership.objects.for_organization(organization)
        self._roles, self._role_of = roles, dict(members.values_list("user_id", "role"))

    def note(self, maker_id: int | None) -> str:
        """What to write behind the maker's name; nothing for what an operator's command made."""
        if maker_id is None:
            return ""
        if maker_id not in self._role_of:
            return "no longer a member"
        role = self._role_of[maker_id]
        return f"{role} now" if self._roles and role not in self._roles else ""

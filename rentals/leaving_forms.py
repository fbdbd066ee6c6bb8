"""What becomes of what a member made, as a form: a choice without default on removal, ticks when a role changes."""

from __future__ import annotations

from typing import Any

from django import forms

from rentals.leaving import WORDS, Fate, LeftBehind

_REVOKE = {
    "api_keys": ("Revoke these API keys too", "Programs that use them are refused from then on."),
    "webhooks": ("Turn off these webhooks too", "They are told nothing from then on; their log stays."),
    "ssh_keys": ("Remove these SSH keys too", "They are put on no further lot; a lot that has one already keeps it."),
}
_KEEP = {
    "api_keys": "Keep these API keys: programs keep working, and so does anybody who has their text",
    "webhooks": "Keep these webhooks: their addresses are told as before",
    "ssh_keys": "Keep these SSH keys: they are put on each lot that is prepared",
}


class RemovalForm(forms.Form):
    """One question for each kind of thing that is left. When valid, `fates` has the answer by kind."""

    def __init__(self, data: Any, *, left: LeftBehind) -> None:
        super().__init__(data)
        for kind in left.kinds:
            self.fields[kind] = forms.ChoiceField(
                label=f"What becomes of these {WORDS[kind]}?",
                help_text=_REVOKE[kind][1],
                choices=[(Fate.REVOKE.value, _REVOKE[kind][0]), (Fate.KEEP.value, _KEEP[kind])],
                widget=forms.RadioSelect,
                error_messages={"required": f"Choose whether these {WORDS[kind]} are revoked or kept."},
            )

    @property
    def fates(self) -> dict[str, str]:
        return dict(self.cleaned_data)


class RoleChangeForm(forms.Form):
    """A tick for each kind: somebody who stays is not locked out of what works, unless it is asked for."""

    def __init__(self, data: Any, *, left: LeftBehind) -> None:
        super().__init__(data)
        for kind in left.kinds:
            self.fields[kind] = forms.BooleanField(label=_REVOKE[kind][0], help_text=_REVOKE[kind][1], required=False)

    @property
    def fates(self) -> dict[str, str]:
        return {kind: Fate.REVOKE if ticked else Fate.KEEP for kind, ticked in self.cleaned_data.items()}

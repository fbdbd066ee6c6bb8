"""What becomes of what was made, as a form: a choice without default when a member is removed, ticks where a role
changes or a key is revoked."""

from __future__ import annotations

from typing import Any

from django import forms

from rentals.leaving import WORDS, Fate, LeftBehind

_REVOKE = {
    "api_keys": ("Revoke these API keys too", "Programs that use them are refused from then on."),
    "webhooks": ("Turn off these webhooks too", "They are told nothing from then on; their log stays."),
    "ssh_keys": ("Remove these SSH keys too", "They are put on no further lot; a lot that has one already keeps it."),
    "invitations": ("Take back these invitations too", "Their links open nothing from then on."),
}
_KEEP = {
    "api_keys": "Keep these API keys: programs keep working, and so does anybody who has their text",
    "webhooks": "Keep these webhooks: their addresses are told as before",
    "ssh_keys": "Keep these SSH keys: they are put on each lot that is prepared",
    "invitations": "Keep these invitations: whoever was invited can still join in the role that is named",
}
_MORE = "More was made after you opened this page. It is listed now: look again, then decide."


class RemovalForm(forms.Form):
    """One question for each kind of thing that is left. When valid, `fates` has the answer by kind."""

    def __init__(self, data: Any, *, left: LeftBehind) -> None:
        super().__init__(data)
        self.left = left
        for kind in left.kinds:
            self.fields[kind] = forms.ChoiceField(
                label=f"What becomes of these {WORDS[kind]}?",
                help_text=_REVOKE[kind][1],
                choices=[(Fate.REVOKE.value, _REVOKE[kind][0]), (Fate.KEEP.value, _KEEP[kind])],
                widget=forms.RadioSelect,
                error_messages={"required": f"Choose whether these {WORDS[kind]} are revoked or kept."},
            )

    def clean(self) -> None:
        """What nobody has seen is not kept by a decision about what they saw."""
        if Fate.KEEP in self.cleaned_data.values() and self.data.get("seen") != self.left.seen:
            self.add_error(None, _MORE)

    @property
    def fates(self) -> dict[str, str]:
        return dict(self.cleaned_data)


class RevokeTooForm(forms.Form):
    """A tick for each kind: what works is not taken away unless it is asked for."""

    def __init__(self, data: Any, *, left: LeftBehind) -> None:
        super().__init__(data)
        for kind in left.kinds:
            self.fields[kind] = forms.BooleanField(label=_REVOKE[kind][0], help_text=_REVOKE[kind][1], required=False)

    @property
    def fates(self) -> dict[str, str]:
        return {kind: Fate.REVOKE if ticked else Fate.KEEP for kind, ticked in self.cleaned_data.items()}

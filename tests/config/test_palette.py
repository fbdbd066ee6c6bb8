"""Contrast of the palette, from the stylesheets themselves: 4.5:1 for text, 3:1 for controls, focus and the bar."""

import re
from itertools import pairwise

import pytest
from django.conf import settings

THEMES = {"light": ["palette.css"], "dark": ["palette.css", "dark.css"]}
TEXT = ["ink", "muted", "primary", "primary-strong", "accent", "ok", "warn", "bad", "info"]
# The order in which parts of a bar stand beside each other; a seventh part has the first fill again.
SEGMENTS = ["seg-a", "seg-b", "seg-c", "seg-d", "seg-e", "seg-f"]


def palette(theme: str) -> dict[str, str]:
    text = "".join((settings.BASE_DIR / "static" / file).read_text() for file in THEMES[theme])
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})\b", text))
    return {name: "#" + "".join(c * 2 for c in code[1:]) if len(code) == 4 else code for name, code in found.items()}


def luminance(code: str) -> float:
    channels = [int(code[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read_on_every_ground(theme: str) -> None:
    colours = palette(theme)
    pairs = [(name, ground) for name in TEXT for ground in ("bg", "surface")]
    pairs += [(tone, f"{tone}-soft") for tone in ("ok", "warn", "bad", "info")]
    pairs += [("ink", "sunken"), ("muted", "sunken"), ("ink", "primary-soft"), ("muted", "primary-soft")]
    pairs += [("ink", f"{tone}-soft") for tone in ("ok", "warn", "bad", "info")]
    pairs += [("on-primary", "primary"), ("on-primary", "primary-strong")]
    pairs += [("hull-ink", "hull"), ("hull-muted", "hull"), ("buoy", "hull")]
    assert [pair for pair in pairs if contrast(colours[pair[0]], colours[pair[1]]) < 4.5] == []


@pytest.mark.parametrize("theme", THEMES)
def test_controls_focus_and_parts_of_the_bar_stand_out(theme: str) -> None:
    colours = palette(theme)
    pairs = [(name, ground) for name in ("control", "focus", *SEGMENTS) for ground in ("bg", "surface")]
    pairs += list(pairwise([*SEGMENTS, SEGMENTS[0]]))
    assert [pair for pair in pairs if contrast(colours[pair[0]], colours[pair[1]]) < 3] == []

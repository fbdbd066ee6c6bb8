"""Countries by ISO 3166-1 alpha-2 code. `EU` is a word of ours for the 27 member states' own codes, not a country."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

EU = "EU"
_SEED = Path(__file__).parent / "seeds" / "countries.json"


@cache
def _rows() -> list[dict]:
    return json.loads(_SEED.read_text(encoding="utf-8"))


@cache
def names() -> dict[str, str]:
    """Every code with its English name, ordered by name."""
    return {row["code"]: row["name"] for row in sorted(_rows(), key=lambda row: row["name"])}


@cache
def eu_members() -> frozenset[str]:
    """The 27 member states' own codes; territories with a code of their own are outside."""
    return frozenset(row["code"] for row in _rows() if row["eu"])


def expand(chosen: Iterable[str]) -> frozenset[str]:
    """The country codes that a choice of codes and `EU` covers.

    >>> len(expand(["EU", "NO"]))
    28
    """
    codes = set(chosen)
    if EU in codes:
        codes = (codes - {EU}) | eu_members()
    return frozenset(codes)

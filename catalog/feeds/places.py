"""Which country a feed means: by code, by name, by the id of a data center. What is none of these is unknown.

A place is the provider's claim (it comes from where its address is registered), so it is read, never improved.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from catalog import countries

_SEED = Path(__file__).parent.parent / "seeds" / "places.json"
# Codes that are written and are not ISO 3166-1.
_CODES = {"UK": "GB", "EL": "GR"}
# Appended behind the country by some feeds. AF, AS, LC and NA are countries' codes too, OC and EU are not.
_CONTINENTS = frozenset({"AF", "AS", "EU", "LC", "NA", "OC"})
# Names of a country that are also a state's, or two countries'.
_AMBIGUOUS = frozenset({"georgia", "congo"})
_COMMAS = str.maketrans(dict.fromkeys("，、﹐;", ","))
_MARKS = re.compile(r"[^\w]+")


class Place(NamedTuple):
    """A country's code, or None. Not understood means that somebody should look at the spelling."""

    country: str | None
    understood: bool


UNKNOWN = Place(None, False)
UNTOLD = Place(None, True)


class Places:
    """Ways of writing a place. Staff's own (`aliases`, None for "names no country") come first.

    >>> places = Places({})
    >>> places.find("The Netherlands, NL, EU").country, places.find(", US").country, places.find("Georgia, US").country
    ('NL', 'US', 'US')
    >>> places.find("EU"), places.find("")
    (Place(country=None, understood=False), Place(country=None, understood=True))
    """

    def __init__(self, aliases: Mapping[str, str | None]) -> None:
        self._aliases = {_key(name): Place(country, True) for name, country in aliases.items()}
        self._found: dict[str, Place] = {}

    @classmethod
    def load(cls) -> "Places":
        """One query."""
        from catalog.models import PlaceAlias

        return cls(dict(PlaceAlias.objects.values_list("name", "country")))

    def find(self, raw: str | None) -> Place:
        text = unicodedata.normalize("NFC", raw or "").translate(_COMMAS).strip(" ,\t\n\r\u3000")
        if not text:
            return UNTOLD
        if text not in self._found:
            # A feed may spell a hundred thousand places; they are not all kept.
            if len(self._found) > 10_000:
                self._found.clear()
            self._found[text] = self._read(text)
        return self._found[text]

    def _read(self, text: str) -> Place:
        if place := self._aliases.get(_key(text)):
            return place
        data_centers, names = _tables()
        code = data_centers.get(text.upper()) or names.get(_key(text))
        if code is None:
            parts = [part.strip() for part in text.split(",")]
            last = parts[-1].upper()
            before = _code(parts[-2]) if len(parts) > 1 else None
            if last in _CONTINENTS and before:
                code = before
            elif last == "EU" and len(parts) > 1:
                code = names.get(_key(parts[-2]))
            else:
                code = _code(last) or names.get(_key(last))
        return Place(code, True) if code else UNKNOWN


def _code(text: str) -> str | None:
    """The country of a code of two or three letters."""
    code = text.upper()
    if len(code) == 3:
        return _alpha3().get(code)
    code = _CODES.get(code, code)
    return code if code in countries.names() else None


def _key(text: str) -> str:
    """A name without what names differ in: case, accents, punctuation and a leading "the"."""
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return " ".join(_MARKS.sub(" ", plain.casefold()).split()).removeprefix("the ")


@cache
def _alpha3() -> dict[str, str]:
    return json.loads(_SEED.read_text(encoding="utf-8"))["alpha3"]


@cache
def _tables() -> tuple[dict[str, str], dict[str, str]]:
    """Data centers by id, countries by name."""
    seed = json.loads(_SEED.read_text(encoding="utf-8"))
    data_centers = {name: code for table in seed["data_centers"].values() for name, code in table.items()}
    names = {_key(name): code for code, name in countries.names().items()}
    names |= {_key(name): code for name, code in seed["names"].items()}
    return data_centers, {name: code for name, code in names.items() if name not in _AMBIGUOUS}

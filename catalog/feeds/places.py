"""Which country a feed means: by code, by name, by the id of a data center. What is none of these is unknown.

A place is the provider's claim (it comes from where its address is registered), so it is read, never improved. The last
part says the country, as every known list means it: "Somewhere, CA" is Canada. Where another part is known to be
elsewhere ("California, CA"), the place is unknown.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from catalog import countries
from catalog.feeds.texts import without_addresses

_SEED = Path(__file__).parent.parent / "seeds" / "places.json"
# Codes that are written and are not ISO 3166-1.
_CODES = {"UK": "GB", "EL": "GR"}
# Appended behind the country by some feeds. AF, AS, LC and NA are countries' codes too, OC and EU are not.
_CONTINENTS = frozenset({"AF", "AS", "EU", "LC", "NA", "OC"})
# Names of a country that are also a state's, or two countries'.
_AMBIGUOUS = {"georgia": {"GE", "US"}, "congo": {"CD", "CG"}}
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
        self._aliases: dict[str, Place] = {}
        for name, country in aliases.items():
            place = Place(country, True)
            # One way of writing with two meanings has none.
            self._aliases[key(name)] = UNKNOWN if self._aliases.get(key(name), place) != place else place
        self._found: dict[str, Place] = {}

    @classmethod
    def load(cls) -> "Places":
        """One query."""
        from catalog.models import PlaceAlias

        return cls(dict(PlaceAlias.objects.values_list("name", "country")))

    def find(self, raw: str | None) -> Place:
        text = _without_commas_around(raw or "")
        if not text:
            return UNTOLD
        if text not in self._found:
            # A feed may spell a hundred thousand places; they are not all kept.
            if len(self._found) > 10_000:
                self._found.clear()
            self._found[text] = self._read(text)
        return self._found[text]

    def _read(self, text: str) -> Place:
        if place := self._aliases.get(key(text)):
            return place
        data_centers, names, _ = _tables()
        if code := data_centers.get(text.upper()) or names.get(key(text)):
            return Place(code, True)
        parts = [part.strip() for part in text.split(",")]
        if len(parts) > 1 and _is_continent(parts[-1], names, behind=parts[-2]):
            parts.pop()
        code = _code(parts[-1]) or names.get(key(parts[-1]))
        if code is None:
            return UNKNOWN
        claims = [_claims(part, is_first=number == 0) for number, part in enumerate(parts[:-1])]
        return UNKNOWN if any(claim and code not in claim for claim in claims) else Place(code, True)


def can_be_told(name: str) -> bool:
    """Whether a list's place can ever be this: what holds an address is left out before, and commas around it are.

    >>> can_be_told("Atlantis"), can_be_told(",,"), can_be_told("Berlin 203.0.113.9")
    (True, False, False)
    """
    return bool(_without_commas_around(name)) and without_addresses(name) == name.strip()


def _without_commas_around(text: str) -> str:
    return unicodedata.normalize("NFC", text).translate(_COMMAS).strip(" ,\t\n\r\u3000")


def _is_continent(last: str, names: Mapping[str, str], *, behind: str) -> bool:
    """Whether the last part is no country of its own, which some continents' codes are as well."""
    if last.upper() not in _CONTINENTS:
        return False
    return _code(behind) is not None or (last.upper() == "EU" and key(behind) in names)


def _claims(part: str, *, is_first: bool) -> set[str]:
    """The countries that a part before the last may name; none for what is only a city or a region of anywhere.

    A code counts at the very beginning alone: elsewhere it is a region's.
    """
    data_centers, names, states = _tables()
    name = key(part)
    if claimed := _AMBIGUOUS.get(name):
        return claimed
    if name in states:
        return {"US"}
    if code := data_centers.get(part.upper()) or names.get(name):
        return {code}
    if not is_first or part.upper() in _CONTINENTS or not (len(part) == 2 or part.isupper()):
        return set()
    return {code for code in (_code(part), "US" if name in states.values() else None) if code}


def _code(text: str) -> str | None:
    """The country of a code of two or three letters."""
    code = text.upper()
    if len(code) == 3:
        return _alpha3().get(code)
    code = _CODES.get(code, code)
    return code if code in countries.names() else None


def key(text: str) -> str:
    """A name without what names differ in: case, accents, punctuation and a leading "the"."""
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    words = " ".join(_MARKS.sub(" ", plain.casefold()).split()).removeprefix("the ")
    # Signs alone are not all one place.
    return words or plain.casefold().strip()


@cache
def _alpha3() -> dict[str, str]:
    return json.loads(_SEED.read_text(encoding="utf-8"))["alpha3"]


@cache
def _tables() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Data centers by id, countries by name, and the codes of the United States' states by name."""
    seed = json.loads(_SEED.read_text(encoding="utf-8"))
    data_centers = {name: code for table in seed["data_centers"].values() for name, code in table.items()}
    names = {key(name): code for code, name in countries.names().items()}
    names |= {key(name): code for name, code in seed["names"].items()}
    states = {key(name): code.casefold() for code, name in seed["us_states"].items()}
    return data_centers, {name: code for name, code in names.items() if name not in _AMBIGUOUS}, states

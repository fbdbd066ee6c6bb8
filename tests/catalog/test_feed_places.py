"""Places as feeds spell them: a country, or unknown and for somebody to look at, and never a guess."""

import pytest

from catalog import countries
from catalog.feeds import Place, Places
from catalog.models import PlaceAlias

UNKNOWN, UNTOLD = Place(None, False), Place(None, True)

SPELLINGS: list[tuple[str | None, str]] = [
    ("Sweden, SE", "SE"),
    ("California, US", "US"),
    (", US", "US"),
    ("Taichung City, TW", "TW"),
    ("Hafnarfjarðarkaupstaður, IS", "IS"),
    ("St.-Petersburg, RU", "RU"),
    ("The Netherlands, NL", "NL"),
    ("The Netherlands", "NL"),
    ("US", "US"),
    ("Norway", "NO"),
    ("Oslo, Norway", "NO"),
    ("Viken, NO, EU", "NO"),
    ("France, FR, EU", "FR"),
    (", US, NA", "US"),
    # 1: "EU" is the continent, its members are not all there are, and Ireland has no tag.
    ("United Kingdom, GB, EU", "GB"),
    ("Zurich, CH, EU", "CH"),
    ("Dublin, IE", "IE"),
    ("EUR-NO-1", "NO"),
    ("EUR-IS-1", "IS"),
    ("EU-RO-1", "RO"),
    # 2 and 3: other codes for Britain and Greece.
    ("London, UK", "GB"),
    ("uk", "GB"),
    ("Athens, EL", "GR"),
    # 4: Kosovo has a code that is not ISO's.
    ("Pristina, XK", "XK"),
    # 5: Northern Ireland is a part of GB.
    ("Belfast, Northern Ireland, GB", "GB"),
    ("Northern Ireland", "GB"),
    # 6 and 7: overseas territories have codes of their own.
    ("Saint-Denis, RE", "RE"),
    ("Mariehamn, AX", "AX"),
    ("Nuuk, GL", "GL"),
    # 9: states whose codes are countries' too.
    ("Georgia, US", "US"),
    ("Tbilisi, GE", "GE"),
    ("US-DE-1", "US"),
    ("CA-MTL-1", "CA"),
    ("Atlanta, Georgia, US", "US"),
    ("San Francisco, CA, USA", "US"),
    ("Wilmington, DE, US", "US"),
    ("CA, US", "US"),
    ("Georgia, GE", "GE"),
    ("Berlin, Germany, DE", "DE"),
    ("British Columbia, CA", "CA"),
    ("New South Wales, AU", "AU"),
    ("Milano, MI, IT", "IT"),
    ("Belém, PA, BR", "BR"),
    ("EU, DE", "DE"),
    ("Nowhere, CA", "CA"),
    # 10: NO and NA are no falsehood and no gap.
    ("NO", "NO"),
    ("NA", "NA"),
    ("Windhoek, NA", "NA"),
    ("Kabul, AF", "AF"),
    ("Castries, LC", "LC"),
    # 11: the name may be anything.
    ("Bavaria, DE", "DE"),
    ("Atlantis, AT", "AT"),
    # 12
    ("Hong Kong, HK", "HK"),
    ("Taiwan, TW", "TW"),
    # 15: case, blanks, commas of other scripts, one too many, accents in two parts.
    ("bavaria ,  de ,", "DE"),
    ("Bayern，DE，", "DE"),
    ("São Paulo, BR", "BR"),
    ("Sa\u0303o Paulo, BR", "BR"),
    ("Re\u0301union", "RE"),
    ("USA", "US"),
    ("deu", "DE"),
    ("Czech Republic", "CZ"),
    ("South Korea", "KR"),
    ("Congo, The Democratic Republic of the", "CD"),
    ("ICE-01", "IS"),
]


@pytest.mark.parametrize(("spelling", "country"), SPELLINGS)
def test_a_spelling_means_its_country(spelling: str, country: str) -> None:
    assert Places({}).find(spelling) == Place(country, True)


@pytest.mark.parametrize(
    "spelling",
    [
        "EU",
        "Europe",
        "Earth",
        "XI",
        "XV",
        "XZ",
        "RD",
        "Georgia",
        "Atlanta, Georgia",
        "Congo",
        "Bavaria",
        "us-east-1",
        "eu-west-2",
        "EU-XX-9",
        "US-XX-1",
        "default",
        "XX, EU",
        # Two parts that are known contradict each other.
        "California, CA",
        "Texas, DE",
        "San Francisco, California, CA",
        "Georgia, DE",
        "Atlanta, Georgia, GA",
        "Germany, FR",
        "Indiana, IN",
        "germany, france",
        "Munich, Germany, AT, EU",
        "Paris, France, US",
        "Texas, Germany",
        "United States, NA",
        "Hong Kong, CN",
        "Puerto Rico, US",
        "Congo, FR",
        "US-TX-3, CA",
        # Which of the two codes is the country?
        "US, CA",
        "us, ca",
        "USA, CA",
        "LA, CA",
        "TX, CA",
        "DE, FR",
        "x" * 300,
        "<b>DE</b>",
    ],
)
def test_what_means_no_country_for_sure_is_unknown(spelling: str) -> None:
    assert Places({}).find(spelling) == UNKNOWN


@pytest.mark.parametrize("spelling", [None, "", "  ", ",", " ， , ", "\u3000"])
def test_where_nothing_is_told_there_is_nothing_to_ask(spelling: str | None) -> None:
    assert Places({}).find(spelling) == UNTOLD


@pytest.mark.django_db
def test_what_staff_decided_comes_first_in_every_way_of_writing_it() -> None:
    PlaceAlias.objects.create(name="Georgia", country="GE")
    PlaceAlias.objects.create(name="Earth", country=None)
    PlaceAlias.objects.create(name="Atlantis, AT", country=None)
    places = Places.load()
    assert places.find("GEORGIA ") == Place("GE", True)
    assert places.find("earth") == places.find("atlantis,at") == UNTOLD
    assert places.find("Vienna, AT") == Place("AT", True)


def test_every_country_is_found_by_its_code_and_by_its_name() -> None:
    places = Places({})
    for code, name in countries.names().items():
        assert places.find(code) == places.find(code.lower()) == Place(code, True)
        assert places.find(f"Somewhere, {code}") == Place(code, True)
        assert places.find(name).country in (code, None)
        if code not in ("GE", "CG"):
            assert places.find(name.upper()) == Place(code, True)

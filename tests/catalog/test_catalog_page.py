"""The catalog page: its address is its state, every filter value offered has a machine, no value is ignored."""

import re
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog import seeding
from catalog.forms import CatalogFilter
from catalog.models import Machine
from catalog.units import GB, MIB
from tests.factories import make_gpu, make_machine, make_provider

URL = "/catalog/"


class Reader(HTMLParser):
    """The machines' names in the table's order, and the values that each control offers."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.offered: dict[str, list[str]] = {}
        self._select: str | None = None
        self._in_machine = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = dict(attrs)
        if tag == "select":
            self._select = at["name"]
        elif tag == "option" and self._select and at.get("value"):
            self.offered.setdefault(self._select, []).append(at["value"] or "")
        elif tag == "input" and at.get("type") == "checkbox":
            self.offered.setdefault(at["name"] or "", []).append(at.get("value") or "on")
        elif tag == "a":
            self._in_machine = bool(re.fullmatch(r"/catalog/machines/\d+/", at.get("href") or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = None
        self._in_machine = False

    def handle_data(self, data: str) -> None:
        if self._in_machine:
            self.names.append(data)


def read(client: Client, query: str | dict[str, Any] = "") -> Reader:
    response = client.get(URL + query) if isinstance(query, str) else client.get(URL, query)
    assert response.status_code == 200
    return Reader(response.content.decode())


@pytest.mark.django_db
def test_each_machine_shows_its_facts_with_their_units(client: Client) -> None:
    make_machine(
        name="RTX 4090 × 1, Frankfurt",
        gpu=make_gpu(name="RTX 4090", memory_gb_nominal=24),
        provider=make_provider(name="Demo Data Center Central", invented=True),
        gpu_memory_bytes=24 * GB,
        memory_unit="GB",
        memory_source="datasheet",
        price_3_days_usd=Decimal("47.14"),
        lots=4,
        free_lots=3,
    )
    page = client.get(URL).content.decode()
    for text in (
        "24 GB nominal (datasheet) = 22.35 GiB counted",
        "3 of 4 lots free",
        "$110.00",
        "$0.6548/h",
        "$471.43",
        "$47.14",
        "Germany",
        "Secure",
        "demo provider",
        "Launch by workload",
        'href="/launch/"',
    ):
        assert text in page, text


@pytest.mark.django_db
def test_what_is_unknown_is_said_in_words(client: Client) -> None:
    make_machine(country=None, gpu_memory_bytes=None, interruptible=True, max_term_days=7)
    page = client.get(URL).content.decode()
    for text in ("Location unknown", "Memory unknown", "interruptible", "at most 7 days", "not offered"):
        assert text in page, text
    assert "None" not in page


@pytest.mark.django_db
def test_b080_gb_stands_only_beside_a_nominal_figure(client: Client) -> None:
    seeding.load()
    for number in range(1, 9):
        table = client.get(URL, {"page": number}).content.decode().split("<tbody>")[1].split("</tbody>")[0]
        # A GPU's own name may carry its class, as "RTX 3080 10 GB" does.
        for said in re.findall(r"× \d+: ([^<]*)", table):
            assert "GB" not in said or "GB nominal (datasheet)" in said


@pytest.mark.django_db
def test_unlisted_machines_are_nowhere(client: Client) -> None:
    make_machine(name="shown")
    hidden = make_machine(name="hidden", listed=False)
    assert read(client).names == ["shown"]
    assert client.get(f"/catalog/machines/{hidden.id}/").status_code == 404


@pytest.fixture
def fleet(db: None) -> None:
    small = make_gpu("t4", name="T4", memory_gb_nominal=16)
    common = make_gpu("rtx-4090", name="RTX 4090", memory_gb_nominal=24)
    older = make_gpu("rtx-3090", name="RTX 3090", memory_gb_nominal=24)
    make_machine(name="A", gpu=small, gpu_memory_bytes=15360 * MIB, price_7_days_usd=Decimal("9.00"), country="FR")
    make_machine(
        name="B",
        gpu=common,
        gpu_memory_bytes=24564 * MIB,
        price_7_days_usd=Decimal("110.00"),
        free_lots=0,
        country="US",
    )
    make_machine(name="C", gpu=older, gpu_memory_bytes=24576 * MIB, price_7_days_usd=Decimal("20.00"), gpu_count=2)
    make_machine(name="D", gpu=common, tier="community", price_7_days_usd=Decimal("100.00"), country=None)
    make_machine(name="E", gpu=common, gpu_memory_bytes=None, price_7_days_usd=Decimal("3.50"), online=False)


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "EACDB"),
        ("?sort=-price", "BDCAE"),
        ("?sort=name", "ABCDE"),
        ("?sort=-memory", "CDBAE"),
        ("?tier=secure", "EACB"),
        ("?tier=any", "EACDB"),
        ("?tier=community", "D"),
        ("?gpu=rtx-4090", "EDB"),
        ("?gpu_count=2", "C"),
        ("?countries=EU", "EAC"),
        ("?countries=EU&countries=US", "EACB"),
        ("?countries=NO", ""),
        ("?available=on", "ACD"),
        ("?memory_class_gb=24", "ECDB"),
        ("?min_memory_gib=24", "CD"),
        ("?min_memory_gib=23.98", "CDB"),
        ("?max_usd=20", "EAC"),
        ("?max_usd=19.99&tier=secure&countries=FR", "A"),
        ("?term_days=3", ""),
        ("?gpu=&gpu_count=&memory_class_gb=&min_memory_gib=&max_usd=&term_days=&sort=&page=&tier=", "EACDB"),
    ],
)
def test_filters_and_order(client: Client, query: str, expected: str) -> None:
    assert "".join(read(client, query).names) == expected


@pytest.mark.usefixtures("fleet")
def test_the_price_filter_and_order_follow_the_term(client: Client) -> None:
    Machine.objects.filter(name="A").update(price_30_days_usd=Decimal("900.00"), price_3_days_usd=Decimal("5.00"))
    assert read(client, "?term_days=30").names[-1] == "A"
    assert "A" not in read(client, "?term_days=30&max_usd=899.99").names
    assert read(client, "?term_days=3").names == ["A"]


BAD = [
    ("tier", "gold"),
    ("gpu", "no-such-gpu"),
    ("gpu", "RTX 4090; DROP TABLE"),
    ("gpu_count", "0"),
    ("gpu_count", "two"),
    ("gpu_count", "17"),
    ("gpu_count", "٣"),
    ("memory_class_gb", "24.5"),
    ("memory_class_gb", "-24"),
    ("min_memory_gib", "-1"),
    ("min_memory_gib", "NaN"),
    ("min_memory_gib", "Infinity"),
    ("min_memory_gib", "24 GB"),
    ("max_usd", "0"),
    ("max_usd", "-5"),
    ("max_usd", "1.005"),
    ("max_usd", "1e400"),
    ("max_usd", "NaN"),
    ("term_days", "5"),
    ("term_days", "seven"),
    ("available", "perhaps"),
    ("countries", "XX"),
    ("countries", "de"),
    ("countries", "Germany"),
    ("sort", "speed"),
    ("page", "0"),
    ("page", "-1"),
    ("page", "two"),
    ("page", "2"),
    ("page", "99999999999999999999"),
]
FIELDS = sorted({field for field, _ in BAD})
BAD += [(field, value) for field in FIELDS for value in ("\x00", "a\x00b", "9" * 5000, "x" * 5000)]


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(("field", "value"), BAD, ids=lambda value: repr(value)[:24])
def test_a_value_that_makes_no_sense_is_an_error_and_shows_no_machines(client: Client, field: str, value: str) -> None:
    response = client.get(URL, {field: value})
    assert response.status_code == 200
    page = response.content.decode()
    assert "There is a problem" in page
    assert field in response.context["form"].errors
    assert Reader(page).names == []


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("field", FIELDS)
def test_a_lone_surrogate_is_an_error_too(client: Client, field: str) -> None:
    response = client.get(f"{URL}?{field}=%ED%A0%80")
    assert response.status_code == 200
    assert field in response.context["form"].errors


@pytest.mark.usefixtures("fleet")
def test_a_value_given_twice_is_not_silently_halved(client: Client) -> None:
    response = client.get(f"{URL}?tier=secure&tier=community")
    assert "tier" in response.context["form"].errors


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("name", ["colour", "Tier", "country", "a\x00b", "<script>"])
def test_an_unknown_parameter_is_refused_by_name(client: Client, name: str) -> None:
    response = client.get(URL, {name: "1"})
    assert response.status_code == 400
    page = response.content.decode()
    assert "is no filter of this page" in page
    assert "min_memory_gib" in page
    assert "<script>”" not in page


@pytest.mark.usefixtures("fleet")
def test_a_bad_value_is_shown_again_beside_its_error(client: Client) -> None:
    page = client.get(URL, {"max_usd": "cheap", "tier": "secure"}).content.decode()
    assert 'value="cheap"' in page
    assert 'aria-invalid="true"' in page
    assert 'href="#id_max_usd"' in page
    assert re.search(r'<option value="secure" selected>', page)


@pytest.mark.django_db
def test_b116_every_value_that_a_filter_offers_has_a_machine(client: Client) -> None:
    seeding.load()
    offered = read(client).offered
    assert set(offered) >= {"tier", "countries", "gpu", "gpu_count", "memory_class_gb", "term_days", "available"}
    for name, values in offered.items():
        for value in values:
            chosen = CatalogFilter(QueryDict(urlencode({name: value})))
            assert chosen.is_valid(), f"{name}={value}"
            assert chosen.machines(timezone.now()).exists(), f"{name}={value}"


@pytest.mark.django_db
def test_a_country_that_has_no_machine_now_stays_chosen(client: Client) -> None:
    make_machine(country="DE")
    page = client.get(URL, {"countries": "NO"}).content.decode()
    assert "Norway" in page
    assert "No machine passes these filters" in page


@pytest.mark.django_db
def test_pages_follow_one_another_without_loss_or_repetition(client: Client) -> None:
    gpu, provider = make_gpu(), make_provider()
    for number in range(60):
        make_machine(name=f"M{number:02}", gpu=gpu, provider=provider)
    pages = [read(client, f"?page={number}").names for number in (1, 2, 3)]
    assert [len(names) for names in pages] == [25, 25, 10]
    assert [name for names in pages for name in names] == [f"M{number:02}" for number in range(60)]
    links = re.findall(r'class="page-link"[^>]*href="([^"]*)"', client.get(f"{URL}?tier=secure").content.decode())
    assert links
    assert all(parse_qs(urlsplit(link.replace("&amp;", "&")).query)["tier"] == ["secure"] for link in links)


@pytest.mark.django_db
def test_a_hundred_machines_cost_as_many_queries_as_ten(client: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            assert client.get(URL).status_code == 200
        return len(caught)

    for _ in range(10):
        make_machine()
    ten = queries()
    for _ in range(90):
        make_machine()
    assert queries() == ten <= 6


@pytest.mark.django_db
def test_an_empty_catalog_is_a_page(client: Client) -> None:
    assert "No machine passes these filters" in client.get(URL).content.decode()


@pytest.mark.django_db
def test_the_page_of_the_seeds_is_small(client: Client) -> None:
    seeding.load()
    assert len(client.get(URL).content) <= 60_000

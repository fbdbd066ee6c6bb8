"""Figures as they are printed: none is 0.00 that is something, and a page whose sums are off by rounding says so."""

import re
from decimal import Decimal

import pytest
from django.test import Client

from catalog import wording
from catalog.models import MemorySource
from catalog.templatetags.units import gib
from catalog.units import GIB, MIB, counted_text, figure
from sizing.explain import FIGURES_NOTE, FIGURES_TOO, ROUNDING_NOTE
from sizing.models import AiModel
from tests.factories import make_gpu, make_machine
from tests.sizing.seeded import seed

ANSWER = (
    "/launch/result/?task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=any"
)


@pytest.mark.parametrize(("size_bytes", "text"), [(1, "less than 0.01 GiB"), (0, "0.00 GiB"), (GIB, "1.00 GiB")])
def test_a_real_figure_is_never_printed_as_nothing(size_bytes: int, text: str) -> None:
    assert gib(size_bytes) == text
    assert figure(size_bytes) == ("< 0.01" if size_bytes == 1 else text.removesuffix(" GiB"))


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (16380 * MIB, "just under 16.00 GiB (15.996)"),
        (16 * GIB - 1, "just under 16.00 GiB (15.999)"),
        (16 * GIB, "16.00 GiB"),
        (24564 * MIB, "23.99 GiB"),
    ],
)
def test_a_memory_that_rounding_would_lift_to_a_whole_figure_says_so(size_bytes: int, text: str) -> None:
    assert counted_text(size_bytes) == text


def test_a_page_whose_printed_figures_are_off_by_rounding_says_so_once(client: Client, db: None) -> None:
    seed("llama-3.1-8b")
    # 19.55 needed of 22.35: 2.80 are printed as free, which adds up; so does every row of the start page.
    make_machine(gpu=make_gpu(), gpu_memory_bytes=24_000_000_000, memory_unit="GB", memory_source="datasheet")
    assert FIGURES_NOTE not in client.get("/").text
    make_machine(gpu=make_gpu(), gpu_memory_bytes=24_153_000_000, memory_unit="bytes", memory_source="data_center")
    html = client.get(ANSWER).text
    found = re.search(r"19\.55 GiB needed ≤ (22\.49) GiB[^;]*; ([\d.]+) GiB", html)
    assert found is not None
    there, free = found.groups()
    assert Decimal(there) - Decimal("19.55") != Decimal(free)
    assert html.count(FIGURES_NOTE) == 1
    assert FIGURES_NOTE in client.get("/").text


def test_lines_and_figures_that_are_both_rounded_are_told_in_one_box(client: Client, db: None) -> None:
    seed("llama-3.1-8b")
    for mib in range(24_000, 24_020):
        make_machine(gpu=make_gpu(), gpu_memory_bytes=mib * MIB, memory_unit="MiB", memory_source="data_center")
    html = client.get(ANSWER.replace("precision_bits=16", "precision_bits=8")).text
    assert re.findall(r'<p class="callout callout-info">([^<]+)</p>', html) == [f"{ROUNDING_NOTE} {FIGURES_TOO}"]
    assert FIGURES_NOTE not in html


def test_the_catalog_and_the_answer_name_a_memory_in_the_same_words(client: Client, db: None) -> None:
    seed("llama-3.1-8b")
    machine = make_machine(
        gpu=make_gpu(),
        tier="community",
        gpu_memory_bytes=24564 * MIB,
        memory_unit="MiB",
        memory_source=MemorySource.PROVIDER_REPORT,
    )
    words = wording.memory(machine)
    assert "24,564 MiB reported by the provider, not verified = 23.99 GiB counted" in words
    for address in (ANSWER, "/catalog/", f"/catalog/machines/{machine.pk}/"):
        assert words in client.get(address).text


def test_terms_stand_from_short_to_long_and_pages_agree_on_them(client: Client, db: None) -> None:
    seed("llama-3.1-8b")
    make_machine(gpu=make_gpu(), price_3_days_usd=Decimal("50.00"))
    html = client.get("/catalog/").text
    assert re.findall(r'<option value="(3|7|30)"', html) == ["3", "7", "30"]
    for address in ("/", "/glossary/"):
        assert "7 or 30 days, 3 days where a trial is priced" in client.get(address).text


def test_every_country_is_said_once(client: Client, db: None) -> None:
    seed("llama-3.1-8b")
    html = client.get(ANSWER).text
    assert html.count("Every country is allowed.") == 1
    assert "Any country." not in html


def test_where_a_model_s_figures_were_read_is_words_and_a_link(client: Client, db: None) -> None:
    seed("llama-3.1-8b")
    model = AiModel.objects.get()
    words, address = model.read_at
    assert re.fullmatch(r"[\w.-]+/[\w.-]+, commit [0-9a-f]{12}", words)
    assert address in model.sources
    assert f'Figures read at <a href="{address}" rel="external noreferrer">{words}</a>' in client.get(ANSWER).text
    assert "revision" not in client.get("/launch/?task=run&model=llama-3.1-8b").text.lower()


def test_the_live_line_of_a_split_says_what_each_gpu_needs(client: Client, db: None) -> None:
    seed("llama-3.1-70b")
    make_machine(gpu=make_gpu(), gpu_count=4, gpu_memory_bytes=80 * GIB, memory_unit="GiB", memory_source="data_center")
    address = "/launch/?task=run&model=llama-3.1-70b&precision_bits=16&context=4096&requests=1"
    assert re.search(
        r'id="live"[^>]*>\d+\.\d\d GiB on each of (2|4) GPUs needed, 1 machine fits', client.get(address).text
    )

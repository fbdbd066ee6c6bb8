"""The answer's page: the figures, the words and the links that it promises, and what must never be on it."""

import html
import json
import re
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.http import QueryDict
from django.utils import timezone

from catalog import countries
from catalog.models import Machine, MemorySource, Tier
from catalog.units import GB, GIB
from sizing.forms import question_from
from sizing.matching import recommend
from sizing.permalinks import canonical_query, question_document
from tests import factories

RESULT = "/launch/result/"
CANONICAL = "task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=any"
LABELS = [
    "Launch by workload",
    "GPU memory needed",
    "Recommended machines",
    "Why it fits",
    "Limits",
    "Budget covers",
    "Confidence",
    "Alternatives",
    "Constraints applied",
    "Launch",
]


@pytest.fixture(autouse=True)
def shop(db):
    """A model and a few machines of every kind that matters here."""
    factories.make_ai_model()
    rtx = factories.make_gpu("rtx-4090", name="RTX 4090", memory_gb_nominal=24)
    make = factories.make_machine
    return {
        "measured": make(
            name="Measured 24 GiB", gpu=rtx, price_7_days_usd=Decimal("110.00"), price_30_days_usd=Decimal("400.00")
        ),
        "nominal": make(
            name="Nominal 24 GB",
            gpu=rtx,
            country="FR",
            gpu_memory_bytes=24 * GB,
            memory_unit="GB",
            memory_source=MemorySource.DATASHEET,
            price_7_days_usd=Decimal("90.00"),
        ),
        "small": make(name="Small 16 GiB", gpu_memory_bytes=16 * GIB, price_7_days_usd=Decimal("20.00")),
        "community": make(name="Shed", tier=Tier.COMMUNITY, country="US", price_7_days_usd=Decimal("60.00")),
        "nowhere": make(name="Nowhere", country=None, price_7_days_usd=Decimal("70.00")),
        "unknown": make(name="Silent", gpu_memory_bytes=None, price_7_days_usd=Decimal("10.00")),
    }


def page(client, **values):
    values = {"task": "run", "model": "llama-3.1-8b", **values}
    response = client.get(RESULT, values, follow=True)
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def test_the_worked_example_is_printed_line_by_line(client):
    text = page(client)
    for words in [
        "14.96",
        "0.50",
        "3.09",
        "1.00",
        "19.55",
        "20 % of 15.46",
        "8,030,261,248 parameters (8,030 million)",
    ]:
        assert words in text
    assert "Lines are rounded" not in text


def test_eight_bits_print_the_rounding_note_and_four_bits_their_total(client):
    eight = page(client, precision_bits=8)
    assert "10.57" in eight
    assert "Lines are rounded; the total is computed from exact bytes." in eight
    assert "6.09" in page(client, precision_bits=4)


def test_at_32768_tokens_the_unit_decides_and_the_page_says_so(client):
    text = page(client, context=32_768)
    recommended = text.partition("Recommended machines</h2>")[2].partition("Alternatives</h2>")[0]
    assert "23.75" in text
    assert "Measured 24 GiB" in recommended
    assert "Nominal 24 GB" not in recommended
    assert "The unit decides here" in text


@pytest.mark.parametrize("label", LABELS)
def test_a_fixed_label_is_on_the_page_verbatim(client, label):
    assert re.search(rf">\s*{label}[\s<:(]", page(client))


def test_the_sections_stand_in_their_order(client):
    text = page(client)
    order = [
        "<h1",
        "GPU memory needed</h2>",
        "Recommended machines</h2>",
        "Alternatives</h2>",
        "Not considered (",
        "Constraints applied</h2>",
        "Limits of every answer</h2>",
        "Share</h2>",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert text.count("<h1") == 1


def test_machines_are_listed_cheapest_first_and_unknown_memory_never(client):
    text = page(client)
    names = re.findall(r'<th scope="row"><a href="[^"]+">([^<]+)</a>', text)
    assert names == ["Shed", "Nowhere", "Nominal 24 GB", "Measured 24 GiB"]
    assert "Silent" not in text


def test_only_the_first_launch_says_that_nothing_is_reserved(client):
    assert page(client).count("Nothing is reserved until you confirm on the next page.") == 1


def test_launch_leads_to_the_review_with_the_machine_and_the_whole_question(client, shop):
    text = page(client, term_days=30)
    links = re.findall(r'href="(/orders/review/\?[^"]+)"', text)
    query = QueryDict(links[0].partition("?")[2])
    assert query["machine"] == str(shop["measured"].pk)
    assert set(query) == {"machine", *QueryDict("task&model&precision_bits&context&requests&term_days&lots&tier")}
    assert query["term_days"] == "30"


def test_a_budget_is_told_in_time_and_whole_terms_and_none_leads_to_its_field(client):
    assert page(client).count("Set a budget to see this") == 1
    text = page(client, budget_usd="300")
    assert "19 days 2 h at $0.65/h; 2 × 7 days" in text
    assert "Set a budget to see this" not in text


def test_with_eu_chosen_no_machine_outside_or_of_unknown_location_is_anywhere(client, shop):
    outside = [shop["community"], shop["nowhere"]]
    for extra in [{}, {"context": 131_072, "requests": 64}, {"budget_usd": "1"}, {"tier": "community"}, {"lots": 9}]:
        text = page(client, countries="EU", **extra)
        for machine in outside:
            assert machine.name not in text
            assert f"/machines/{machine.pk}/" not in text
            assert f"machine={machine.pk}&" not in text
            assert machine.provider.name not in text


def test_with_eu_chosen_the_seeded_catalog_shows_no_machine_from_elsewhere(client):
    call_command("load_catalog")
    outside = Machine.objects.exclude(country__in=countries.eu_members()) | Machine.objects.filter(country=None)
    text = page(client, countries="EU", show="all")
    assert outside.count() > 20
    inside = set(Machine.objects.filter(country__in=countries.eu_members()).values_list("name", flat=True))
    for machine in outside:
        assert f"/machines/{machine.pk}/" not in text
        assert f"machine={machine.pk}&" not in text
        if machine.name not in inside:
            assert f">{machine.name}<" not in text


def test_alternatives_name_exactly_what_they_miss_and_link_to_their_answer(client, shop):
    text = page(client, tier="secure", max_hourly_usd="0.6000", countries="DE")
    alternatives = text.partition("Alternatives</h2>")[2]
    assert "+$0.0548 per hour over your maximum" in alternatives
    link = re.search(r'href="(/launch/result/\?[^"]+)">See this answer', alternatives)[1]
    assert "Measured 24 GiB" in html.unescape(client.get(link).content.decode()).partition("Alternatives</h2>")[0]


@pytest.mark.parametrize(
    "asked",
    [
        {"context": 131_072, "requests": 4},
        {"tier": "community", "countries": "DE"},
        {"budget_usd": "50"},
        {"max_hourly_usd": "0.01"},
        {"lots": 7},
        {"term_days": 3},
        {"countries": "JP"},
    ],
)
def test_when_nothing_is_recommended_every_change_offered_gives_a_machine(client, asked):
    text = page(client, **asked)
    offered = text.partition('class="empty-state"')[2].partition("</section>")[0]
    links = re.findall(r'href="/launch/result/\?([^"]+)">See this answer', offered)
    assert links or "No single change to your question gives a machine now." in offered
    for link in links:
        assert recommend(question_from(QueryDict(link)), now=timezone.now()).recommended_count >= 1


def test_empty_answers_have_different_texts(client):
    def heading(**asked):
        return re.search(r'class="empty-state">\s*<h3>([^<]+)', page(client, **asked))[1]

    narrow, budget = heading(tier="community", countries="DE"), heading(budget_usd="5")
    too_small = heading(context=131_072, requests=9)
    Machine.objects.update(free_lots=0)
    rented = heading()
    Machine.objects.update(online=False)
    off_line = heading()
    assert len({narrow, budget, too_small, rented, off_line}) == 5
    assert "GiB" in too_small


def test_no_speed_is_claimed_and_every_figure_has_its_unit(client):
    text = page(client, budget_usd="300")
    assert not re.search(r"\d\s*(tokens?/s|tok/s|tokens per second|it/s)", text)
    assert "None" not in re.sub(r"<[^>]+>|None:", " ", text)
    assert "NaN" not in text
    assert not re.search(r"\d G[\s<]", text)
    cells = re.findall(r'<td data-label="(7 days|Headroom)"[^>]*>(.*?)</td>', text, re.S)
    assert cells
    for label, cell in cells:
        figures = re.findall(r"[^\s<>]+ ?(?:GiB|%)|\$[0-9,.]+(?:/h)?", re.sub(r"<[^>]+>", " ", cell))
        numbers = re.findall(r"\d[\d,.]*", re.sub(r"<[^>]+>", " ", cell))
        assert len(figures) == len(numbers), (label, cell)


def test_the_bar_is_an_image_with_a_title_and_the_table_its_twin(client):
    text = page(client)
    assert 'role="img"' in text
    assert "GPU memory needed on one GPU: 19.55 GiB</title>" in text
    assert "Model weights 14.96 GiB, KV cache 0.50 GiB" in text
    assert text.count("What is this?") == 4


def test_a_model_split_over_gpus_is_drawn_and_told_for_each_gpu(client):
    factories.make_machine(name="Pair", gpu_count=2, gpu_memory_bytes=24 * GIB)
    text = page(client, context=65_536)
    assert "Each of 2 GPUs: 14.77 GiB" in text
    assert "32 attention heads ÷ 2 = 16" in text
    assert "2 GPUs</th>" in text


def test_a_question_in_another_order_is_sent_on_to_its_canonical_address(client):
    response = client.get(f"{RESULT}?model=llama-3.1-8b&task=run&budget_usd=&countries=US&countries=EU")
    assert response.status_code == 302
    assert response.url == (f"{RESULT}?{CANONICAL}&countries=EU&countries=US")
    assert client.get(response.url).status_code == 200


def test_the_page_tells_how_to_ask_the_same_of_the_api(client):
    text = page(client, budget_usd="300", reserve_gib="1", reserve_reason="it's mine", countries="DE")
    command = re.search(r'<code id="curl">(.*?)</code>', text, re.S)[1]
    assert "/api/v1/recommendations" in command
    assert '"budget_usd": "300.00"' in command
    assert '"reserve_reason": "it\\u0027s mine"' in command


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"precision_bits": 8, "countries": ["EU", "US"], "budget_usd": "100", "max_hourly_usd": "0.55"},
        {"context": 131_072, "requests": 9, "reserve_gib": "1.5", "reserve_reason": "it's mine"},
    ],
)
def test_page_and_api_say_the_same(client, asked):
    query = canonical_query(question_from({"task": "run", "model": "llama-3.1-8b", **asked}))
    text = html.unescape(client.get(f"{RESULT}?{query}&show=all").content.decode())
    body = json.dumps(question_document(question_from(QueryDict(query))), ensure_ascii=False)
    answer = client.post("/api/v1/recommendations", body, content_type="application/json").json()
    assert f"{answer['memory']['total_gib']} GiB" in text
    for line in answer["memory"]["lines"]:
        assert line["formula"] in text
    for row in [*answer["recommended"], *answer["alternatives"]["machines"]]:
        assert row["machine"]["name"] in text
        assert row["why_it_fits"] in text
        for said in [*row["limits"], *row["confidence"]["reasons"]]:
            assert said["text"] in text
    for constraint in answer["constraints"]:
        assert constraint["text"] in text
    assert answer["fingerprint"] in text


def test_only_looking_is_allowed(client):
    for address in ("/", "/launch/", RESULT):
        assert client.post(address).status_code == 405


def test_a_reason_cannot_write_into_the_page(client):
    response = client.get(
        RESULT,
        {"task": "run", "model": "llama-3.1-8b", "reserve_gib": "1", "reserve_reason": "<script>x</script>"},
        follow=True,
    )
    assert b"<script>x" not in response.content


def test_nothing_is_written_by_looking(client, shop, django_assert_max_num_queries):
    before = list(Machine.objects.order_by("pk").values())
    with django_assert_max_num_queries(8):
        client.get(
            f"{RESULT}?task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=any"
        )
    assert list(Machine.objects.order_by("pk").values()) == before


def test_a_long_list_is_shown_in_part_and_whole_on_request(client):
    for number in range(30):
        factories.make_machine(name=f"Another {number}", price_7_days_usd=Decimal("200.00"))
    assert "Show 22 more machines" in page(client)
    whole = client.get(f"{RESULT}?{CANONICAL}&show=all").content.decode()
    assert "Another 29" in whole


def test_the_page_of_the_seeded_catalog_stays_small(client):
    call_command("load_catalog")
    assert len(page(client).encode()) < 60_000

"""The calculator's pages: the address is the state, every figure has its unit, and bad input has a sentence."""

import html
import json
import re
from decimal import Decimal
from fractions import Fraction
from math import ceil, prod
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from catalog.units import GB, GIB, gib_to_bytes, to_gib
from sizing.calculator import words
from sizing.engine.envelope import Envelope, ReserveEntry
from sizing.engine.stages import Chain, Stage
from tests.factories import make_ai_model, make_gpu, make_machine

SEVEN = {"parameters": "7", "parameter_unit": "billions"}
ENTRY = {
    "reserve_1_name": "Cache",
    "reserve_1_gib": "6",
    "reserve_1_reason": "four users",
    "reserve_1_state": "measured",
}
STAGES = {
    f"stage_{number}_{name}": value
    for number, stage in enumerate(
        [("Encode", "1.5", "2", "step"), ("Prepare", "0.5", "0.5", "kept"), ("Answer", "14.5", "4", "step")], 1
    )
    for name, value in zip(("name", "weights_gib", "working_memory_gib", "load"), stage, strict=True)
}
BARE_NUMBER = re.compile(r"^\s*[\d,.]+\s*$")


def page(values: dict[str, Any], address: str = "/calculator/") -> str:
    response = Client().get(address, values, follow=True)
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def problems(text: str) -> list[str]:
    """The sentences of the summary; each is at its field too, and leads to an element of the page."""
    summary = re.search(r'<div class="error-summary".*?</div>', text, re.S)
    assert summary
    links = re.findall(r'<a href="#([^"]+)">([^<]+)</a>', summary.group())
    for anchor, sentence in links:
        assert f'id="{anchor}"' in text, anchor
        without_field = sentence.startswith(("Rows ", "Give at least"))
        assert without_field or text.count(re.sub(r"^(Entry|Stage) \d+: ", "", sentence)) >= 2, sentence
    return [sentence for _, sentence in links]


def cells(text: str) -> list[str]:
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", text, re.S)]


# --- Figures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bits", "weights", "envelope"),
    [("32", "26.08", "32.08"), ("16", "13.04", "19.04"), ("8", "6.52", "12.52"), ("4", "3.26", "9.26")],
)
def test_the_published_table_is_on_the_page_under_its_labels(db: None, bits: str, weights: str, envelope: str) -> None:
    text = page({**SEVEN, **ENTRY, "bits": bits})
    figures = dict(re.findall(r"<dt>([^<]+)</dt><dd><strong>([^<]+)</strong>", text))
    assert figures["Weights only"] == f"{weights} GiB"
    assert figures["Indicative envelope"] == f"{envelope} GiB"
    for every in ("26.08 GiB", "32.08 GiB", "13.04 GiB", "19.04 GiB", "6.52 GiB", "12.52 GiB", "3.26 GiB", "9.26 GiB"):
        assert every in text


def test_no_number_of_a_table_stands_without_its_unit(db: None) -> None:
    make_machine()
    for text in (page({**SEVEN, **ENTRY}), page(STAGES, "/calculator/stages/")):
        found = cells(text)
        assert len(found) > 10
        assert [cell for cell in found if BARE_NUMBER.match(cell)] == []


@pytest.mark.parametrize(
    ("figure", "unit", "parameters"),
    [
        ("7000000000", "ones", "7,000,000,000"),
        ("7.5", "billions", "7,500,000,000"),
        ("7,5", "billions", "7,500,000,000"),
        ("0.000000001", "billions", "1"),
        ("8030.261248", "millions", "8,030,261,248"),
        ("1000000", "billions", "1,000,000,000,000,000"),
    ],
)
def test_parameters_are_read_exactly_in_each_unit(db: None, figure: str, unit: str, parameters: str) -> None:
    text = page({"parameters": figure, "parameter_unit": unit})
    assert re.search(rf"<td[^>]*>{parameters} parameters?[ ]", text)


def test_without_a_unit_the_figure_is_the_number_itself_as_in_the_api(db: None) -> None:
    assert "7,000,000,000 parameters" in page({"parameters": "7000000000"})


def test_an_entry_that_is_still_unknown_is_named_and_makes_the_envelope_incomplete(db: None) -> None:
    unknown = {"reserve_1_name": "Optimizer", "reserve_1_reason": "method not chosen", "reserve_1_state": "unknown"}
    text = page({**SEVEN, **unknown})
    assert "Incomplete: 1 entry is still unknown (Optimizer) and not counted." in text
    assert "0.00 GiB" not in text
    # In the program for Python it is a word of the language.
    assert "None" not in text.partition("import requests")[0]
    assert text.count("Unknown</td>") == 2


def test_the_purpose_changes_no_figure_and_names_other_entries_to_document(db: None) -> None:
    inference, training = page(SEVEN), page({**SEVEN, "purpose": "training"})
    figure = re.compile(r"<dt>Indicative envelope</dt><dd><strong>([^<]+)")
    assert figure.findall(inference) == figure.findall(training) == ["13.04 GiB"]
    assert "Gradients and optimizer" in training
    assert "Gradients and optimizer" not in inference
    assert "no multiplier for training" in training


def test_it_says_what_is_left_out_and_that_an_envelope_can_still_fail(db: None) -> None:
    text = page(SEVEN)
    for sentence in (*words.LEFT_OUT, *words.NOTES):
        assert sentence.text in text


def test_rounded_lines_that_do_not_add_up_are_said_to_be_rounded(db: None) -> None:
    entry = {"reserve_1_name": "A", "reserve_1_gib": "0.01", "reserve_1_reason": "b", "reserve_1_state": "measured"}
    lines = [
        (text, "Lines are rounded; the total is computed from exact bytes." in text)
        for text in (page({"parameters": str(number), **entry}) for number in range(2_690_000, 8_100_000, 900_000))
    ]
    for text, noted in lines:
        line, total = (Decimal(one) for one in re.findall(r"<dd><strong>([\d.]+) GiB", text))
        assert noted is (line + Decimal("0.01") != total)


# --- Formulas -----------------------------------------------------------------------------------------------------


def product(formula: str) -> Fraction:
    """What printed factors come to."""
    factors = [re.match(r"[\d,.]+", part) for part in formula.split(" × ")]
    return prod((Fraction(found[0].replace(",", "")) for found in factors if found), start=Fraction(1))


def summed(formula: str) -> int:
    return sum(int(number.replace(",", "")) for number in re.findall(r"(?:^| \+ )([\d,]+) bytes?", formula))


hundredths = st.integers(0, 10**7)


def stated(figure: int) -> int:
    return gib_to_bytes(Decimal(figure).scaleb(-2))


@given(st.integers(1, 10**15), st.sampled_from([32, 16, 8, 4]), st.lists(hundredths, max_size=20))
def test_printed_lines_of_an_envelope_come_to_their_bytes(parameters: int, bits: int, figures: list[int]) -> None:
    entries = tuple(ReserveEntry("A", "b", "estimated", stated(figure)) for figure in figures)
    envelope = Envelope(parameters, bits, entries)
    assert ceil(product(words.weights_formula(envelope))) == envelope.weights_bytes
    for entry in entries:
        assert ceil(product(words.entry_formula(entry))) == entry.bytes
    assert summed(words.envelope_formula(envelope)) == envelope.total_bytes


stages = st.builds(
    Stage,
    st.sampled_from(["A", "B"]),
    hundredths.map(stated),
    hundredths.map(stated),
    st.sampled_from(["kept", "step"]),
)


@given(st.lists(stages, min_size=1, max_size=20))
def test_printed_sums_of_a_chain_come_to_their_bytes(found: list[Stage]) -> None:
    chain = Chain(tuple(found))
    assert summed(words.resident_formula(chain)) == chain.resident_bytes
    for step in chain.steps:
        assert summed(words.step_formula(step)) == step.total_bytes
    for stage in found:
        assert ceil(product(words.stage_formula(stage.weights_bytes))) == stage.weights_bytes


# --- The address --------------------------------------------------------------------------------------------------


def test_the_empty_pages_judge_nothing_and_have_three_rows(db: None) -> None:
    for address, legend in (("/calculator/", "Entry"), ("/calculator/stages/", "Stage")):
        text = page({}, address)
        assert "There is a problem" not in text
        assert "Result" not in text
        assert re.findall(rf">{legend} (\d+)", text) == ["1", "2", "3"]
    assert 'value="billions" selected' in page({})


def test_a_row_is_added_without_script_and_nothing_is_lost_or_judged(db: None) -> None:
    text = page({"parameters": "x", "reserve_1_name": "Cache", "rows": "4"})
    assert re.findall(r">Entry (\d+)", text) == ["1", "2", "3", "4"]
    assert re.search(r'name="rows" value="5" formaction="[^"]*#id_reserve_5_name">Add a row', text)
    assert 'name="reserve_1_name" value="Cache"' in text
    assert "There is a problem" not in text
    assert "Add a row" not in page({"rows": "20"})
    # Enter in a field presses the first button of a form.
    assert text.index(">Calculate<") < text.index(">Add a row<")


def test_the_address_of_an_answer_is_canonical_and_empty_rows_are_no_entries(db: None) -> None:
    late = {name.replace("_1_", "_7_"): value for name, value in ENTRY.items()}
    response = Client().get("/calculator/", {**late, **SEVEN, "reserve_2_name": " ", "reserve_2_state": "estimated"})
    assert response.status_code == 302
    expected = {**SEVEN, "bits": "16", "purpose": "inference", **ENTRY}
    assert response["Location"] == f"/calculator/?{urlencode(expected)}"
    assert Client().get(response["Location"]).status_code == 200


def test_every_link_to_another_format_asks_the_same_with_that_format(db: None) -> None:
    text = page({**SEVEN, **ENTRY})
    links = re.findall(r'<a href="\?([^"#]+)#result">(\d+) bits', text)
    assert [bits for _, bits in links] == ["32", "16", "8", "4"]
    for query, bits in links:
        assert dict(parse_qsl(query)) == {**SEVEN, "bits": bits, "purpose": "inference", **ENTRY}


@pytest.mark.parametrize(
    ("address", "name", "hint"),
    [
        ("/calculator/", "paramters", "Did you mean parameters?"),
        ("/calculator/", "reserve_21_name", "rows are counted from 1 to 20"),
        ("/calculator/", "reserve_0_gib", "rows are counted from 1 to 20"),
        ("/calculator/", "model", "“model” is not known."),
        ("/calculator/stages/", "stage_21_load", "rows are counted from 1 to 20"),
        ("/calculator/stages/", "a\0b\ud800", "is not known"),
    ],
)
def test_an_unknown_name_is_a_400_that_names_the_known_ones(db: None, address: str, name: str, hint: str) -> None:
    query = urlencode({name: "1"}, errors="surrogatepass")
    response = Client().get(f"{address}?{query}")
    assert response.status_code == 400
    text = html.unescape(response.content.decode())
    assert hint in text
    known = "stage_N_weights_gib" if "stages" in address else "reserve_N_reason"
    assert f"<code>{known}</code>" in text
    assert "<code>rows</code>" in text


# --- Bad input ----------------------------------------------------------------------------------------------------

HUGE = "1" + "0" * 60
BAD = [
    ({"parameters": ""}, "Parameters is empty"),
    ({"parameters": "-7"}, "Parameters must be 1 or more."),
    ({"parameters": "0"}, "Parameters must be 1 or more."),
    ({"parameters": HUGE}, "Parameters must be 1,000,000,000,000,000 or less"),
    ({"parameters": "seven"}, "“seven” is not"),
    ({"parameters": "NaN"}, "“NaN” is not"),
    ({"parameters": "7\0"}, "is not"),
    ({"parameters": "7.5"}, "must be a whole number"),
    ({"parameters": "7e9"}, "must be a whole number"),
    ({"parameters": ["7", "8"]}, "Parameters must be given once."),
    ({"parameters": "7.5b", "parameter_unit": "billions"}, "must be an amount in billion"),
    ({"parameters": "7,500", "parameter_unit": "billions"}, "can be read in two ways"),
    ({"parameters": "-1", "parameter_unit": "billions"}, "Parameters must be 0.000000001 billion or more."),
    ({"parameters": "1000001", "parameter_unit": "billions"}, "Parameters must be 1,000,000 billion or less."),
    ({"parameters": "1.0000000001", "parameter_unit": "billions"}, "at most 9 decimals"),
    ({"parameters": "0.0000001", "parameter_unit": "millions"}, "at most 6 decimals"),
    ({"parameter_unit": "dozens"}, "Counted in must be"),
    ({"bits": "5"}, "Format must be 32, 16, 8 or 4 bits."),
    ({"bits": "16 bits"}, "Format must be a whole number"),
    ({"purpose": "fun"}, "Purpose must be inference or training"),
    ({"rows": "21"}, "Rows must be 20 or less"),
    ({"rows": "0"}, "Rows must be 1 or more"),
    ({"rows": "x"}, "Rows must be a whole number"),
    ({"reserve_1_name": ""}, "Entry 1: Name is empty"),
    ({"reserve_1_name": "a\0"}, "Entry 1: Name must be plain text on one line."),
    ({"reserve_1_name": "a" * 81}, "Entry 1: Name must be 80 characters or less."),
    ({"reserve_1_gib": ""}, "Entry 1: Amount is empty"),
    ({"reserve_1_gib": "-6"}, "Entry 1: Amount must be 0 GiB or more."),
    ({"reserve_1_gib": HUGE}, "Entry 1: Amount"),
    ({"reserve_1_gib": "6 GiB"}, "Entry 1: Amount must be an amount in GiB"),
    ({"reserve_1_gib": "NaN"}, "Entry 1: Amount must be an amount in GiB"),
    ({"reserve_1_gib": "6\0"}, "Entry 1: Amount must be an amount in GiB"),
    ({"reserve_1_gib": "1,024"}, "Entry 1: Amount “1,024” can be read in two ways"),
    ({"reserve_1_gib": "0.001"}, "Entry 1: Amount may have at most 2 decimals"),
    ({"reserve_1_reason": ""}, "Entry 1: Reason is empty"),
    ({"reserve_1_reason": "a\nb"}, "Entry 1: Reason must be plain text on one line."),
    ({"reserve_1_reason": "a" * 201}, "Entry 1: Reason must be 200 characters or less."),
    ({"reserve_1_state": "guessed"}, "Entry 1: State must be estimated, measured or unknown"),
    ({"reserve_1_state": ""}, "Entry 1: State is empty"),
    ({"reserve_1_state": "unknown"}, "Entry 1: Amount must be empty while the entry is still unknown"),
    ({"reserve_1_name": ["a", "b"]}, "Entry 1: Name must be given once."),
]  # fmt: skip


@pytest.mark.parametrize(("values", "sentence"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_bad_input_is_named_at_its_field_with_the_fix_and_kept(db: None, values: Any, sentence: str) -> None:
    text = page({"parameters": "7000000000", **ENTRY, **values})
    found = problems(text)
    assert len(found) == 1
    assert sentence in found[0]
    assert '<h2 id="result"' not in text
    assert "Error: Memory calculator" in text
    assert 'name="reserve_1_name"' in text


def test_a_reason_that_is_markup_is_text_on_the_page(db: None) -> None:
    response = Client().get("/calculator/", {**SEVEN, **ENTRY, "reserve_1_reason": "<b>'\"</b>"}, follow=True)
    assert b"<b>" not in response.content
    assert response.status_code == 200


def test_a_quote_in_a_reason_cannot_end_the_command(db: None) -> None:
    text = page({**SEVEN, **ENTRY, "reserve_1_reason": "it's mine"})
    sent = re.search(r"-d '([^']*)'", text)
    assert sent
    assert json.loads(sent[1])["reserve"][0]["reason"] == "it's mine"


# --- Candidates ---------------------------------------------------------------------------------------------------


def test_candidates_are_gpus_that_hold_the_envelope_cheapest_first_and_all_to_confirm(db: None) -> None:
    card = make_gpu("rtx-4090", name="RTX 4090", memory_gb_nominal=24)
    make_machine(name="Dear 4090", gpu=card, price_7_days_usd=Decimal("110.00"))
    make_machine(name="Cheap 4090", gpu=card, price_7_days_usd=Decimal("80.00"))
    nominal = {"gpu_memory_bytes": 48 * GB, "memory_source": "datasheet", "memory_unit": "GB"}
    large = make_gpu("l40s", name="L40S", memory_gb_nominal=48)
    make_machine(name="Large", gpu=large, price_7_days_usd=Decimal("60.00"), **nominal)
    make_machine(name="Too small", gpu_memory_bytes=16 * GIB)
    make_machine(name="Never told", gpu_memory_bytes=None)
    make_machine(name="Sold out", free_lots=0)
    text = page({**SEVEN, **ENTRY})
    section = text[text.index("Candidates to examine") : text.index('id="share-title"')]
    assert re.findall(r'<a href="/catalog/machines/\d+/">([^<]+)</a>', section) == ["Large", "Cheap 4090"]
    assert section.count("To confirm") == 2
    assert "48 GB nominal (datasheet) = 44.70 GiB counted" in section
    assert "25,769,803,776 bytes measured (data center) = 24.00 GiB counted" in section
    assert "2 machines available now" in section
    assert "recommend" not in section.lower()


def test_at_most_twenty_candidates_are_listed_and_all_are_counted(db: None) -> None:
    for number in range(22):
        make_machine(price_7_days_usd=Decimal(100 - number))
    text = page(SEVEN)
    assert text.count("To confirm") == 20
    assert "22 GPU products" in text
    assert "The 20 cheapest are listed." in text


def test_when_no_gpu_holds_it_the_page_says_so_and_adds_no_memories_up(db: None) -> None:
    make_machine(gpu_count=8)
    text = page({"parameters": "1000000", "parameter_unit": "billions"})
    assert "Memories of several GPUs are not added up here" in text
    assert "To confirm" not in text


def test_where_the_unit_decides_the_page_says_so(db: None) -> None:
    make_gpu(memory_gb_nominal=24)
    text = page({**SEVEN, **ENTRY, "reserve_1_gib": "10"})
    assert "The unit decides here: 23.04 GiB fits a GPU measured at 24.00 GiB" in text


# --- Stages -------------------------------------------------------------------------------------------------------


def test_both_envelopes_of_a_chain_stand_side_by_side_and_the_largest_step_is_named(db: None) -> None:
    text = page(STAGES, "/calculator/stages/")
    figures = dict(re.findall(r"<dt>([^<]+)</dt><dd><strong>([^<]+)</strong>", text))
    assert figures == {"Everything resident": "20.50 GiB", "Step by step": "19.00 GiB"}
    assert "Loading step by step needs 1.50 GiB less. The step “Answer” is the largest and decides." in text
    for sentence in (*words.STAGE_ASSUMPTIONS, *words.STAGE_REMARKS):
        assert sentence.text in text
    assert len(re.findall(r'<svg class="membar', text)) == 2
    assert to_gib(22_011_707_392) == Decimal("20.50")
    assert "22,011,707,392 bytes" in text


BAD_STAGES = [
    ({"stage_1_weights_gib": ""}, "Stage 1: Weights is empty: give it in GiB, 0 when there is none."),
    ({"stage_1_working_memory_gib": ""}, "Stage 1: Working memory is empty"),
    ({"stage_1_working_memory_gib": "-1"}, "Stage 1: Working memory must be 0 GiB or more."),
    ({"stage_1_weights_gib": HUGE}, "Stage 1: Weights"),
    ({"stage_1_weights_gib": "a lot"}, "Stage 1: Weights must be an amount in GiB"),
    ({"stage_1_weights_gib": "1,024"}, "can be read in two ways"),
    ({"stage_1_name": "\0"}, "Stage 1: Name must be plain text on one line."),
    ({"stage_1_name": ""}, "Stage 1: Name is empty"),
    ({"stage_1_load": "maybe"}, "Stage 1: Loading must be kept or step"),
]


@pytest.mark.parametrize(("values", "sentence"), BAD_STAGES, ids=[str(number) for number in range(len(BAD_STAGES))])
def test_a_bad_stage_is_named_at_its_field(db: None, values: Any, sentence: str) -> None:
    found = problems(page({**STAGES, **values}, "/calculator/stages/"))
    assert len(found) == 1
    assert sentence in found[0]


def test_a_chain_without_a_stage_asks_for_one(db: None) -> None:
    assert problems(page({"stage_1_load": "kept"}, "/calculator/stages/")) == ["Give at least one stage."]


def test_examples_of_the_empty_pages_have_answers(db: None) -> None:
    for address in ("/calculator/", "/calculator/stages/"):
        query = re.search(r'href="[^"?]*\?([^"#]+)#result">See an example', page({}, address))
        assert query
        assert '<h2 id="result"' in page(dict(parse_qsl(query[1])), address)


def test_the_wizard_the_header_and_the_footer_lead_to_the_calculator(db: None) -> None:
    make_ai_model()
    text = page({"task": "run"}, "/launch/")
    assert 'Your model is not listed? <a href="/calculator/">Use the memory calculator</a>' in text
    assert text.count('href="/calculator/"') == 3

"""The words: formulas that multiply to their bytes, and sentences with the agreed figures."""

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.models import Machine, MemorySource
from catalog.units import GB, GIB, MIB, to_gib
from sizing import explain
from sizing.answers import Candidate, Change, Constraint, Miss, NotConsidered, Preferences, Question
from sizing.engine.confidence import REASONS, judge
from sizing.engine.estimate import estimate
from sizing.engine.fit import Device, Fit, fit
from sizing.engine.kv_cache import KVCache
from sizing.engine.overhead import Margin, Reserve, Runtime
from sizing.engine.shapes import CacheGroup
from sizing.engine.weights import Weights
from sizing.engine.workloads import RunModel, Workload
from sizing.explain import answers, machines, words
from sizing.models import AiModel
from tests.sizing.engine.shapes import SHAPES
from tests.sizing.engine.test_properties import groups

LLAMA = RunModel(SHAPES["llama-3.1-8b"])


# --- Formulas -----------------------------------------------------------------------------------------------------


def printed_numbers(text: str) -> Iterator[Fraction]:
    """The factors of a product as printed: numbers, shares ("4 of 8" is 4) and windows ("min(a, b)")."""
    for factor in text.split(" × "):
        if smaller := re.match(r"min\(([\d,]+), ([\d,]+)\)", factor):
            yield Fraction(min(int(number.replace(",", "")) for number in smaller.groups()))
        else:
            number = re.match(r"[\d,.]+", factor)
            assert number, factor
            yield Fraction(number.group().replace(",", ""))


def printed_bytes(formula: str) -> Fraction:
    """What a printed sum of products comes to on one GPU."""
    product = formula.partition(" = ")[0]
    product, _, gpus = product.partition(" ÷ ")
    total = sum((Fraction(prod(printed_numbers(part))) for part in product.split(" + ")), Fraction(0))
    return total / int(gpus.split()[0]) if gpus else total


gpus = st.integers(1, 16)


@given(st.integers(1, 10**13), st.sampled_from([16, 8, 4]), gpus)
def test_the_printed_weights_multiply_to_their_bytes(parameters: int, bits: int, gpus: int) -> None:
    term = Weights(parameters, bits, gpus)
    assert ceil(printed_bytes(explain.formula(term))) == term.bytes


@given(
    st.lists(groups(), min_size=1, max_size=3),
    st.integers(1, 10**6),
    st.integers(1, 10**5),
    st.integers(0, 10**9),
    gpus,
)
def test_the_printed_cache_multiplies_to_its_bytes(
    layers: list[CacheGroup], context: int, requests: int, state: int, gpus: int
) -> None:
    term = KVCache(tuple(layers), context, requests, state, gpus)
    assert printed_bytes(explain.formula(term)) == term.bytes
    assert len(explain.cache_parts(term)) == len(layers) + bool(state)


@given(st.integers(1, 10**15), gpus)
def test_the_printed_margin_is_the_share_it_says(of_bytes: int, gpus: int) -> None:
    term = Margin(of_bytes, gpus=gpus)
    found = re.match(r"(\d+) % of (less than )?([\d,.]+) GiB", explain.formula(term))
    assert found
    assert ceil(Fraction(int(found[1]) * of_bytes, 100)) == term.bytes
    assert found[2] or Decimal(found[3].replace(",", "")) == to_gib(of_bytes)


@given(gpus)
def test_the_printed_runtime_multiplies_to_the_whole_line(gpus: int) -> None:
    term = Runtime(gpus)
    assert prod(printed_numbers(explain.formula(term).replace(" GiB", ""))) * GIB == term.bytes * gpus


def test_the_worked_example_reads_as_agreed() -> None:
    assert [explain.formula(term) for term in estimate(LLAMA).terms] == [
        "8,030,261,248 parameters (8,030 million) × 2 bytes",
        "2 × 32 layers × 8 KV heads × 128 × 2 bytes × 4,096 tokens × 1 request",
        "20 % of 15.46 GiB",
        "1 GiB × 1 GPU",
    ]


def test_several_gpus_show_the_split_and_what_each_holds() -> None:
    need = estimate(RunModel(SHAPES["llama-3.1-70b"]), 2)
    assert [explain.formula(term) for term in need.terms] == [
        "70,553,706,496 parameters (70,554 million) × 2 bytes ÷ 2 GPUs = 65.71 GiB on each of 2 GPUs",
        "2 × 80 layers × 4 of 8 KV heads × 128 × 2 bytes × 4,096 tokens × 1 request = 0.63 GiB on each of 2 GPUs",
        "20 % of 66.33 GiB = 13.27 GiB on each of 2 GPUs",
        "1 GiB × 2 GPUs",
    ]


def test_windows_latent_vectors_and_states_have_a_part_of_their_own() -> None:
    window, latent, state = (
        estimate(RunModel(SHAPES[model], context=context)).terms[1]
        for model, context in (("medgemma-27b-it", 131072), ("deepseek-v3", 4096), ("qwen3.5-27b", 4096))
    )
    assert explain.formula(window).endswith(
        "2 × 52 layers × 16 KV heads × 128 × 2 bytes × min(131,072, 1,024) tokens × 1 request"
    )
    assert explain.formula(latent) == "61 layers × 576 elements × 2 bytes × 4,096 tokens × 1 request"
    assert explain.formula(state).endswith(" + 153,944,064 bytes of state × 1 request")


def test_a_reserve_prints_its_reason() -> None:
    assert explain.formula(Reserve(6 * GIB, "a web server", 2)) == "6 GiB × 2 GPUs: a web server"
    assert explain.formula(Reserve(5 * GIB // 2, "a web server")) == "2.50 GiB × 1 GPU: a web server"


def test_every_kind_of_line_has_a_label_and_says_what_it_is() -> None:
    need = estimate(replace(LLAMA, reserve_bytes=GIB, reserve_reason="a web server"))
    assert {term.code for term in need.terms} < set(explain.LABELS)
    assert list(explain.labels(need).values()) == [
        "Model weights",
        "KV cache",
        "Additional margin",
        "CUDA runtime",
        "Own reserve",
    ]
    assert set(explain.LABELS) == set(explain.WHAT_IS_THIS)
    assert all(text.count(". ") == 2 and " grows " in text for text in explain.WHAT_IS_THIS.values())
    with pytest.raises(TypeError):
        explain.formula(object())  # type: ignore[arg-type]


def test_the_rounding_note_is_there_only_when_the_printed_lines_do_not_add_up() -> None:
    assert explain.rounding_note(estimate(LLAMA)) is None
    note = "Lines are rounded; the total is computed from exact bytes."
    assert explain.rounding_note(estimate(replace(LLAMA, precision_bits=8))) == note


# --- What the figures assume --------------------------------------------------------------------------------------


def llama_row(**fields: Any) -> AiModel:
    figures = {"slug": "llama-3.1-8b", "name": "Llama 3.1 8B", "source_url": "https://example.com/card", "sources": []}
    return AiModel(**{**figures, **fields})


def test_b024_margin_and_runtime_are_called_a_planning_rule_and_never_guaranteed() -> None:
    text = " ".join(explain.assumptions(llama_row(), estimate(LLAMA)))
    assert "planning rule and no guarantee" in text
    assert "guaranteed" not in text


def test_b035_the_cache_is_said_to_be_16_bit() -> None:
    assert "The KV cache is kept at 16 bits" in explain.assumptions(llama_row(), estimate(LLAMA))[0]


def test_b026_image_tokens_are_said_to_count() -> None:
    need = estimate(LLAMA)
    assert "Image tokens count towards the context." in explain.assumptions(llama_row(accepts_images=True), need)
    assert "Image tokens count towards the context." not in explain.assumptions(llama_row(), need)


def test_quantized_weights_are_called_theoretical_and_mixtures_whole() -> None:
    text = " ".join(explain.assumptions(llama_row(active_parameters=1), estimate(replace(LLAMA, precision_bits=4), 16)))
    assert "4 bits is the theoretical size" in text
    assert "All experts" in text
    assert "8 KV heads on 16 GPUs: heads are copied" in text


def test_sources_begin_with_the_model_card() -> None:
    row = llama_row(sources=["https://github.com/a/b/blob/c/d/config.py", "https://example.com/x", "a note"])
    assert explain.sources(row) == [
        ("Llama 3.1 8B: model card", "https://example.com/card"),
        ("a/b: config.py", "https://github.com/a/b/blob/c/d/config.py"),
        ("example.com: x", "https://example.com/x"),
    ]


def test_sensitivity_is_the_engine_s_own_difference() -> None:
    assert explain.sensitivity(LLAMA) == (
        "Each further 1,000 tokens of context 0.15 GiB and each further request 0.60 GiB more, margin included."
    )
    at_the_maximum = replace(LLAMA, context=131072)
    assert explain.sensitivity(at_the_maximum) == "Each further request 19.20 GiB more, margin included."


# --- Machines -----------------------------------------------------------------------------------------------------


def candidate(workload: Workload = LLAMA, *, gpu_count: int = 1, **fields: Any) -> Candidate:
    """A candidate on a machine that is in no database: words need none."""
    from catalog.models import Gpu, Provider

    defaults = {
        "name": "A machine",
        "tier": "secure",
        "country": "DE",
        "gpu_memory_bytes": 24 * GIB,
        "memory_unit": "GiB",
        "memory_source": "data_center",
        "lots": 3,
        "free_lots": 3,
        "gpu": Gpu(slug="rtx-4090", name="RTX 4090", vendor="NVIDIA"),
        "provider": Provider(slug="one", name="One"),
    }
    machine = Machine(gpu_count=gpu_count, **{**defaults, **fields})
    assert machine.gpu_memory_bytes
    found = fit(workload, Device(gpu_count, machine.gpu_memory_bytes))
    assert isinstance(found, Fit)
    confidence = judge(
        found.estimate,
        memory_bytes=machine.gpu_memory_bytes,
        memory_source=machine.memory_source,
        cuda=machine.gpu.cuda,
    )
    price = Decimal("110.00")
    return Candidate(machine, found.estimate, found.headroom_bytes, price, price, confidence)


def test_why_it_fits_compares_and_says_what_stays_free() -> None:
    nominal = candidate(gpu_memory_bytes=24 * GB, memory_unit="GB", memory_source="datasheet")
    assert explain.why_it_fits(nominal) == "19.55 GiB needed ≤ 22.35 GiB on one RTX 4090; 2.80 GiB (12.5 %) free."


def test_why_it_fits_shows_the_split_and_its_divisions() -> None:
    large = candidate(RunModel(SHAPES["llama-3.1-70b"]), gpu_count=4, gpu_memory_bytes=90 * GIB)
    assert explain.why_it_fits(large) == (
        "80.60 GiB needed on each of 2 GPUs ≤ 90.00 GiB on each RTX 4090; 9.40 GiB (10.4 %) free on each. Uses 2 of 4 "
        "GPUs: 64 attention heads ÷ 2 = 32, 8 KV heads ÷ 2 = 4, MLP width 28,672 ÷ 2 = 14,336."
    )


def test_memory_is_shown_as_stated_and_as_counted() -> None:
    def machine(figure: int, unit: str, source: str) -> Machine:
        return Machine(gpu_memory_bytes=figure, memory_unit=unit, memory_source=source)

    assert explain.memory_text(machine(24 * GB, "GB", MemorySource.DATASHEET)) == (
        "24 GB nominal (datasheet) = 22.35 GiB counted"
    )
    assert explain.memory_text(machine(24564 * MIB, "MiB", MemorySource.PROVIDER_REPORT)) == (
        "24,564 MiB reported by the provider, not verified = 23.99 GiB counted"
    )
    assert explain.memory_text(machine(80 * GIB, "GiB", MemorySource.DATA_CENTER)) == (
        "80 GiB measured (data center) = 80.00 GiB counted"
    )
    assert explain.memory_text(Machine()) == "Memory unknown"


def test_the_reading_of_the_unit_is_told_only_where_it_decides() -> None:
    need = estimate(replace(LLAMA, context=32768)).per_gpu_bytes
    text = explain.reading_decides(need, [16, 24, 48])
    assert "23.75 GiB" in text
    assert "24 GB nominal" in text
    assert "22.35 GiB" in text
    assert explain.reading_decides(estimate(LLAMA).per_gpu_bytes, [16, 24, 48]) == ""


def test_limits_come_with_the_facts_of_the_machine() -> None:
    def codes(**fields: Any) -> list[str]:
        return [limit.code for limit in explain.limits(candidate(**fields))]

    assert codes() == ["reservation_limit"]
    assert codes(gpu_memory_bytes=20 * GIB) == ["narrow_margin", "reservation_limit"]
    assert codes(workload=replace(LLAMA, precision_bits=4)) == ["reservation_limit", "quantization_metadata"]
    assert codes(tier="community", memory_source="provider_report", country=None, interruptible=True, lots=1) == [
        "memory_source", "reservation_limit", "interruptible", "provider_can_read_memory", "location_unknown",
    ]  # fmt: skip
    copied = candidate(RunModel(SHAPES["qwen3-235b-a22b"], 8), gpu_count=8, gpu_memory_bytes=80 * GIB)
    assert "kv_copied" not in [limit.code for limit in explain.limits(copied)]
    eight = candidate(RunModel(SHAPES["qwen3-235b-a22b"], 8), gpu_count=8, gpu_memory_bytes=44 * GIB)
    text = dict(explain.limits(eight))
    assert "kv_copied" in text
    assert "groups divide over 8 GPUs is not checked" in text["quantization_metadata"]
    capped = explain.limits(candidate(max_term_days=7))
    assert capped[0].text == "3 lots free now; at most 7 days at a time."


def test_every_reason_of_confidence_has_a_sentence_and_what_would_raise_it() -> None:
    assert set(REASONS) == set(machines.REASONS) == set(machines.RAISES)
    low = candidate(replace(LLAMA, precision_bits=8), gpu_memory_bytes=24 * GB, memory_source="datasheet")
    assert [reason.code for reason in explain.confidence_reasons(low)] == ["quantized", "datasheet"]
    assert [raising.code for raising in explain.confidence_raises(low)] == ["quantized", "datasheet"]


@pytest.mark.parametrize(
    ("budget", "lots", "price", "hours", "terms", "text"),
    [
        ("300.00", 1, "110.00", "458.18", 2, "19 days 2 h at $0.65/h; 2 × 7 days"),
        ("300.00", 2, "110.00", "229.09", 1, "9 days 13 h at $0.65/h × 2 lots; 1 × 7 days"),
        ("110.00", 1, "110.00", "168.00", 1, "7 days at $0.65/h; 1 × 7 days"),
        ("109.99", 1, "110.00", "167.98", 0, "6 days 23 h at $0.65/h; less than one term of 7 days"),
        ("0.10", 1, "110.00", "0.15", 0, "0 h at $0.65/h; less than one term of 7 days"),
        ("10.00", 1, "1.00", "1680.00", 10, "70 days at $0.0060/h; 10 × 7 days"),
    ],
)
def test_how_far_a_budget_goes(budget: str, lots: int, price: str, hours: str, terms: int, text: str) -> None:
    package = Decimal(price)
    one = replace(candidate(), package_usd=package, order_total_usd=package * lots)
    found = explain.budget_covers(one, Preferences(budget_usd=Decimal(budget), lots=lots))
    assert found is not None
    assert (str(found.hours), found.whole_terms, found.text) == (hours, terms, text)


def test_without_a_budget_nothing_is_said_of_it() -> None:
    assert explain.budget_covers(candidate(), Preferences()) is None


def test_a_miss_says_by_how_much() -> None:
    one = candidate().machine
    assert explain.miss_text(Miss("max_hourly_usd", Decimal("0.0048")), one) == "+$0.0048 per hour over your maximum"
    assert explain.miss_text(Miss("budget_usd", Decimal("20.00")), one) == "+$20.00 over your budget"
    assert explain.miss_text(Miss("tier"), one) == "Secure instead of Community"


# --- Answers ------------------------------------------------------------------------------------------------------


def test_every_reason_for_leaving_out_has_a_sentence() -> None:
    from sizing.answers import NOT_CONSIDERED

    question = Question(llama_row(), LLAMA, Preferences(lots=2))
    texts = {code: explain.not_considered_text(NotConsidered(code, 3), question) for code in NOT_CONSIDERED}
    assert texts["out_of_stock"] == "3 machines with fewer than 2 lots free."
    assert all(text.startswith("3 machines ") for text in texts.values())


@pytest.mark.parametrize(
    ("field", "value", "price", "text"),
    [
        ("precision_bits", 8, "70.00", "8 bits instead: 4 machines, from $70.00 per lot."),
        ("context", 23233, "70.00", "A context of 23,233 tokens: 4 machines, from $70.00 per lot."),
        ("requests", 1, "70.00", "1 request at once: 4 machines, from $70.00 per lot."),
        ("lots", 1, "70.00", "1 lot: 4 machines, from $70.00 per lot."),
        ("term_days", 30, "70.00", "A term of 30 days: 4 machines, from $70.00 per lot."),
        ("tier", "any", "70.00", "Tier: Any tier: 4 machines, from $70.00 per lot."),
        ("budget_usd", Decimal("70.00"), "70.00", "A budget of $70.00: 4 machines, from $70.00 per lot."),
        (
            "max_hourly_usd",
            Decimal("0.4167"),
            "70.00",
            "A maximum price per hour of $0.4167: 4 machines, from $70.00 per lot.",
        ),
        ("countries", (), None, "Countries: any: 4 machines."),
    ],
)
def test_a_change_says_what_it_gives(field: str, value: object, price: str | None, text: str) -> None:
    change = Change(field, value, 4, None if price is None else Decimal(price))
    assert explain.change_text(change) == text


def test_figures_in_sentences_are_written_one_way() -> None:
    assert words.counted(1, "request") == "1 request"
    assert words.counted(1234, "token") == "1,234 tokens"
    assert words.gib(1) == "less than 0.01 GiB"
    assert words.percent(999, 10_000) == "9.9 %"
    assert words.usd(Decimal("1110")) == "$1,110.00"


def test_limits_of_every_answer_name_speed_calculation_now_and_community() -> None:
    texts = dict(explain.LIMITS_OF_EVERY_ANSWER)
    assert {"speed", "calculation", "now", "no_speed_ranking", "compatibility", "community"} == set(texts)
    assert "provider can read" in texts["community"]


def test_constraints_with_a_policy_have_words_too() -> None:
    for code, value in (("policy_tiers", ("secure",)), ("policy_countries", ("DE",)), ("policy_countries", ())):
        assert "policy" in answers._CONSTRAINTS[Constraint(code, value).code](None, value)  # type: ignore[arg-type]

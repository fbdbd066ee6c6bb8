"""Over every seeded model and task: what is printed multiplies out, and more work never needs less."""

import re
from dataclasses import replace
from fractions import Fraction
from math import ceil, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.units import GIB, to_gib
from sizing import explain
from sizing.engine.adapters import Adapters, BaseWeights, adapted
from sizing.engine.decoder_cache import DecoderCache
from sizing.engine.estimate import MemoryEstimate, Term, estimate, split_estimates
from sizing.engine.networks import NetworkWeights
from sizing.engine.workloads import FineTune, RunModel, Transcribe, Workload, shrinkable
from sizing.models import AiModel
from tests.sizing.seed_shapes import IMAGE, LANGUAGE, SPEECH, every_workload, fine_tune, run, transcribe

EVERY = [pytest.param(model, workload, id=name) for name, model, workload in every_workload()]


def number(text: str) -> Fraction:
    found = re.match(r"[\d,]+(\.\d+)?", text)
    assert found, text
    return Fraction(found.group().replace(",", ""))


def product(text: str) -> Fraction:
    """A printed product: numbers with their nouns, windows ("min(a, b)"), sums in brackets, and "÷ 8" at the end."""
    text, _, divisor = text.partition(" ÷ ")
    factors = []
    for factor in text.split(" × "):
        if factor.startswith("min("):
            factors.append(min(map(number, re.findall(r"\d[\d,]*", factor))))
        elif factor.startswith("("):
            factors.append(sum(map(number, factor.strip("(").partition(")")[0].split(" + ")), Fraction(0)))
        else:
            factors.append(number(factor))
    return Fraction(prod(factors)) / (number(divisor) if divisor else 1)


def printed_bytes(formula: str) -> Fraction:
    """What a printed formula comes to, from its text alone. What follows a colon explains and is no factor."""
    text = formula.partition(": ")[0]
    if larger := re.fullmatch(r"max\((.+ hidden), (.+ vocabulary)\) bytes", text):
        return max(map(product, larger.groups()))
    if stated := re.fullmatch(r"([\d,.]+) (GiB|GB)( × 1 GPU)?", text):
        return number(stated[1]) * {"GiB": GIB, "GB": 10**9}[stated[2]]
    # A sum inside brackets is a factor; one outside joins products.
    return sum((product(part) for part in re.split(r" \+ (?![^(]*\))", text)), Fraction(0))


def check_printed(need: MemoryEstimate, term: Term) -> None:
    formula = explain.formula(term)
    if term.code == "margin":
        share, shown = re.fullmatch(r"(\d+) % of ([\d,.]+) GiB", formula).groups()  # type: ignore[union-attr]
        before = sum(one.bytes for one in need.terms[: need.terms.index(term)])
        assert ceil(Fraction(int(share) * before, 100)) == term.bytes
        assert number(shown) == Fraction(to_gib(before))
    else:
        assert ceil(printed_bytes(formula)) == term.bytes, formula


@pytest.mark.parametrize(("model", "workload"), EVERY)
def test_every_printed_formula_multiplies_out_to_the_bytes_of_its_line(
    model: AiModel | None, workload: Workload
) -> None:
    reserve = {} if model is None else {"reserve_bytes": 5 * GIB // 2, "reserve_reason": "a web server: 2 × 3"}
    need = estimate(replace(workload, **reserve))  # type: ignore[arg-type]
    for term in need.terms:
        check_printed(need, term)
        assert explain.label(term.code)
        assert explain.what_is_this(term.code).count(". ") == 2
    assert need.total_bytes == sum(need.line_bytes(term) for term in need.terms)


@pytest.mark.parametrize(("model", "workload"), EVERY)
def test_every_workload_has_words_assumptions_sources_and_a_sensitivity(
    model: AiModel | None, workload: Workload
) -> None:
    need = estimate(workload)
    assert explain.workload_words(workload).startswith(
        ("A notebook" if model is None else model.name, f"Fine-tuning {model.name if model else ''}")
    )
    assert len(explain.assumptions(model, need)) >= 2
    assert bool(explain.sources(model, workload)) is (model is not None)
    assert "None" not in " ".join([*explain.assumptions(model, need), explain.sensitivity(workload)])
    assert explain.sensitivity(workload).endswith(".")


@given(st.integers(1, 10**7), st.integers(1, 10**5), st.integers(1, 4096), st.sampled_from([16, 8, 4]))
@settings(max_examples=100, deadline=None)
def test_the_lines_of_training_multiply_out_whatever_is_asked(length: int, batch: int, rank: int, bits: int) -> None:
    for slug in ("llama-3.1-8b", "phi-4", "deepseek-v3"):
        model = replace(fine_tune(slug).model, max_context=10**7)
        need = estimate(FineTune(model, bits, length, batch, rank))
        for term in need.terms:
            check_printed(need, term)


@given(st.integers(1, 10**13), st.integers(1, 100), st.integers(1, 10**5))
def test_the_lines_of_images_and_speech_multiply_out_whatever_is_asked(size: int, layers: int, streams: int) -> None:
    network = NetworkWeights("denoiser", "A network × 2", size)
    assert printed_bytes(explain.formula(network)) == network.bytes
    cache = DecoderCache(layers, 1280, 1500, 448, streams)
    assert printed_bytes(explain.formula(cache)) == cache.bytes
    base = BaseWeights(size, 4)
    assert ceil(printed_bytes(explain.formula(base))) == base.bytes


@pytest.mark.parametrize("slug", LANGUAGE)
def test_the_shape_of_the_adapters_multiplies_out_to_the_trained_parameters(slug: str) -> None:
    term = Adapters(adapted(fine_tune(slug).training.projections, "qkvo"), 16)
    shape = explain.adapter_shape(term)
    assert product(shape.removeprefix("rank ")) == term.trainable_parameters


def test_lines_of_training_read_as_agreed() -> None:
    need = estimate(fine_tune("llama-3.1-8b", 4, length=4096))
    assert [explain.formula(term) for term in need.terms] == [
        "8,030,261,248 parameters (8,030 million) × 4.127 bits ÷ 8",
        "13,631,488 trainable parameters × 16 bytes: rank 16 × 32 layers × "
        "(8,192 q_proj + 5,120 k_proj + 5,120 v_proj + 8,192 o_proj)",
        "2 bytes × 4,096 tokens × 1 × 4,096 hidden × 32 layers",
        "max(34 × 4,096 tokens × 1 × 4,096 hidden, 12 × 4,096 tokens × 1 × 128,256 vocabulary) bytes",
        "20 % of 10.93 GiB",
        "1 GiB × 1 GPU",
    ]


# --- Kinds, not cases ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", LANGUAGE)
def test_each_further_request_adds_exactly_the_cache_of_one(slug: str) -> None:
    one, two, three, seven = (estimate(run(slug, requests=requests)) for requests in (1, 2, 3, 7))
    cache = next(term.bytes for term in one.terms if term.code == "kv_cache")
    for need, requests in ((two, 2), (three, 3), (seven, 7)):
        added = need.total_bytes - one.total_bytes
        # With its 20 %, of which each total rounds up once.
        assert abs(added - Fraction(120 * cache * (requests - 1), 100)) < 1
        assert next(term.bytes for term in need.terms if term.code == "kv_cache") == requests * cache


@pytest.mark.parametrize("slug", LANGUAGE)
@pytest.mark.parametrize("bits", [16, 8, 4])
def test_the_need_per_gpu_never_grows_with_the_gpus(slug: str, bits: int) -> None:
    for context, requests in ((1, 1), (4096, 1), (10**9, 16)):
        needs = [need.per_gpu_bytes for need in split_estimates(run(slug, bits, context, requests))]
        assert needs == sorted(needs, reverse=True)


@pytest.mark.parametrize("slug", LANGUAGE)
def test_a_window_caps_the_cache_of_its_layers(slug: str) -> None:
    model = LANGUAGE[slug].shape()
    for group in model.cache_groups:
        if group.window is None or group.window >= model.max_context:
            continue
        only = replace(model, cache_groups=(group,), state_bytes_per_sequence=0)
        contexts = (group.window - 1, group.window, group.window + 1, model.max_context)
        shorter, *capped = (estimate(RunModel(only, context=context)).total_bytes for context in contexts)
        assert len(set(capped)) == 1
        assert shorter < capped[0]


@pytest.mark.parametrize(("model", "workload"), EVERY)
def test_more_of_any_count_never_needs_less(model: AiModel | None, workload: Workload) -> None:
    for field in shrinkable(workload):
        counts = [1, getattr(workload, field)]
        needs = [estimate(replace(workload, **{field: count})).total_bytes for count in sorted(counts)]  # type: ignore[arg-type]
        assert needs == sorted(needs)


@pytest.mark.parametrize("slug", [*LANGUAGE, *SPEECH])
def test_fewer_bits_need_less(slug: str) -> None:
    makers = [run, fine_tune] if slug in LANGUAGE else [transcribe]
    for make in makers:
        needs = [estimate(make(slug, bits)).total_bytes for bits in (4, 8, 16)]  # type: ignore[operator]
        assert needs == sorted(needs)
        assert len(set(needs)) == 3


def test_every_kind_is_there() -> None:
    assert (len(LANGUAGE), len(IMAGE), len(SPEECH)) == (65, 11, 8)
    assert isinstance(transcribe("whisper-tiny"), Transcribe)

"""What holds for every model and every workload."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from sizing.engine.estimate import estimate, split_estimates
from sizing.engine.fit import Device, Fit, fit
from sizing.engine.parallelism import is_legal_split
from sizing.engine.shapes import CacheGroup, LanguageModel
from sizing.engine.workloads import RunModel

positive = st.integers(1, 200)


@st.composite
def groups(draw: st.DrawFn) -> CacheGroup:
    heads = draw(st.none() | st.integers(1, 128))
    elements = draw(st.integers(1, 2048)) if heads is None else 2 * heads * draw(st.integers(1, 256))
    return CacheGroup(draw(positive), elements, heads, draw(st.none() | st.integers(1, 40_000)))


@st.composite
def workloads(draw: st.DrawFn) -> RunModel:
    model = LanguageModel(
        name="any model",
        parameters=draw(st.integers(1, 10**13)),
        attention_heads=draw(st.integers(1, 256)),
        cache_groups=tuple(draw(st.lists(groups(), min_size=1, max_size=3))),
        max_context=draw(st.integers(1, 2_000_000)),
        split_width=draw(st.none() | st.integers(1, 60_000)),
        state_bytes_per_sequence=draw(st.sampled_from([0, 1, 150_994_944])),
    )
    return RunModel(
        model,
        precision_bits=draw(st.sampled_from([16, 8, 4])),
        context=draw(st.integers(1, model.max_context)),
        requests=draw(st.integers(1, 1000)),
    )


@given(workloads())
def test_the_total_is_the_sum_of_its_lines_and_each_is_a_whole_number(workload: RunModel) -> None:
    for need in split_estimates(workload):
        assert need.total_bytes == sum(need.line_bytes(term) for term in need.terms)
        assert all(type(term.bytes) is int and term.bytes >= 0 for term in need.terms)
        assert need.total_bytes == need.gpus * need.per_gpu_bytes


@given(workloads(), st.integers(1, 16))
def test_every_line_is_the_exact_fraction_rounded_up_once(workload: RunModel, gpus: int) -> None:
    model = workload.model
    weights = ceil(Fraction(model.parameters * workload.precision_bits, 8 * gpus))
    cache = Fraction(model.state_bytes_per_sequence * workload.requests)
    for group in model.cache_groups:
        share = (
            Fraction(1) if group.kv_heads is None else Fraction(ceil(Fraction(group.kv_heads, gpus)), group.kv_heads)
        )
        kept = workload.context if group.window is None else min(workload.context, group.window)
        cache += share * group.layers * group.elements_per_token * 2 * kept * workload.requests
    assert cache.denominator == 1
    margin = ceil(Fraction(20, 100) * (weights + cache))
    found = [term.bytes for term in estimate(workload, gpus).terms]
    assert found == [weights, cache, margin, 2**30]


@given(workloads())
def test_the_need_per_gpu_never_grows_with_the_gpus(workload: RunModel) -> None:
    needs = [need.per_gpu_bytes for need in split_estimates(workload)]
    assert needs == sorted(needs, reverse=True)


@given(workloads(), st.integers(1, 16))
def test_more_context_or_more_requests_never_need_less(workload: RunModel, gpus: int) -> None:
    need = estimate(workload, gpus).per_gpu_bytes
    assert estimate(replace(workload, requests=workload.requests + 1), gpus).per_gpu_bytes >= need
    if workload.context < workload.model.max_context:
        assert estimate(replace(workload, context=workload.context + 1), gpus).per_gpu_bytes >= need


@given(workloads(), st.integers(1, 16), st.integers(1, 2**42))
def test_a_fit_is_the_smallest_legal_split_that_holds_it(workload: RunModel, gpu_count: int, memory: int) -> None:
    found = fit(workload, Device(gpu_count, memory))
    holding = [
        gpus
        for gpus in range(1, gpu_count + 1)
        if is_legal_split(workload.model, gpus) and estimate(workload, gpus).per_gpu_bytes <= memory
    ]
    assert isinstance(found, Fit) is bool(holding)
    if isinstance(found, Fit):
        assert found.estimate.gpus == holding[0]
        assert found.headroom_bytes == memory - found.estimate.per_gpu_bytes
    else:
        assert found.lacking_bytes > 0

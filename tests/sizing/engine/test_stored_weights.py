"""A checkpoint whose bytes are known is counted by them, and by nothing else."""

from dataclasses import replace

import pytest

from catalog.units import to_gib
from sizing.engine.confidence import judge
from sizing.engine.errors import InvalidWorkload, UnsizableModel
from sizing.engine.estimate import estimate, split_estimates
from sizing.engine.workloads import FineTune, RunModel, lower_precisions, precision_of
from sizing.explain import formula
from sizing.own_reading import read_files
from tests.sizing.own_files import config, index, quantized

BYTES = 25_100_000_000
STORED = read_files(quantized(), (index(BYTES),)).imported.shape("Mine")


def test_files_of_25_gb_are_never_less_than_23_gib_of_weights() -> None:
    """B017."""
    weights = estimate(RunModel(STORED, None)).terms[0]
    assert weights.code == "weights"
    assert weights.bytes == BYTES
    assert str(to_gib(weights.bytes)) == "23.38"
    assert formula(weights) == "25,100,000,000 bytes stored in the checkpoint"


def test_each_gpu_holds_its_part_rounded_up() -> None:
    for split in split_estimates(RunModel(replace(STORED, stored_bytes=BYTES + 1), None)):
        assert split.terms[0].bytes == -(-(BYTES + 1) // split.gpus)
        assert "25,100,000,001 bytes stored in the checkpoint" in formula(split.terms[0])
    assert "÷ 2 GPUs" in formula(estimate(RunModel(STORED, None), 2).terms[0])


def test_a_precision_does_not_apply() -> None:
    workload = RunModel(STORED, None)
    assert precision_of(workload) is None
    assert lower_precisions(workload) == ()
    with pytest.raises(InvalidWorkload) as refused:
        RunModel(STORED, 16)
    assert refused.value.field == "precision_bits"
    with pytest.raises(InvalidWorkload):
        RunModel(replace(STORED, stored_bytes=None), None)


def test_a_quantized_checkpoint_lowers_the_confidence_and_is_not_trained() -> None:
    sure = {"memory_bytes": 80 * 2**30, "memory_source": "data_center", "cuda": True}
    assert judge(estimate(RunModel(STORED, None)), **sure).reasons == ("quantized",)
    plain = read_files(config(), (index(16_060_522_496),)).imported.shape("Mine")
    assert judge(estimate(RunModel(plain, None)), **sure).reasons == ()
    with pytest.raises(UnsizableModel) as refused:
        FineTune(STORED)
    assert refused.value.field == "quantization"
    assert FineTune(plain).training.layers == 32

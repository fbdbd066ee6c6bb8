"""GPU names as feeds spell them: one GPU each, variants told apart by memory, look-alikes never mixed up."""

import pytest

from catalog import seeding
from catalog.feeds import GpuNames
from catalog.feeds.gpu_names import Known
from catalog.models import Gpu, GpuAlias

MIB, GB = 2**20, 10**9


@pytest.fixture
def names(db: None) -> GpuNames:
    seeding.load()
    return GpuNames.load()


def slug(names: GpuNames, raw: str, memory: int | None = None) -> str | None:
    found = names.find(raw, memory)
    return None if found is None else Gpu.objects.get(pk=found).slug


@pytest.mark.parametrize(
    ("raw", "mib", "expected"),
    [
        ("RTX6000-Ada", 49140, "rtx-6000-ada"),
        ("RTX6000Ada", 49140, "rtx-6000-ada"),
        ("RTX 6000Ada", 49140, "rtx-6000-ada"),
        ("RTX6000", 24576, "quadro-rtx-6000"),
        ("Q RTX 6000", 24576, "quadro-rtx-6000"),
        ("RTXA6000", 49140, "rtx-a6000"),
        ("A6000", 49140, "rtx-a6000"),
        ("RTXPRO6000WS", 97887, "rtx-pro-6000-blackwell-ws"),
        ("RTX PRO 6000 S", 97887, "rtx-pro-6000-blackwell-server"),
        ("rtx_4090", 24564, "rtx-4090"),
        ("NVIDIA GeForce RTX  4090", None, "rtx-4090"),
        ("RTX 4090", 49140, "rtx-4090"),
        # Rebuilt with four times its memory at most; then it is the memory of all GPUs, or another unit.
        ("RTX 4090", 98304, "rtx-4090"),
        ("RTX 4090", 8 * 24564, None),
        ("RTX 4090", 2**21, None),
        # Less is a part of one.
        ("RTX 4090", 1024, "rtx-4090"),
        ("RTX 4070S Ti", 16376, "rtx-4070-ti-super"),
        ("A100 SXM4", 40960, "a100-sxm4-40gb"),
        ("A100 SXM4", 81920, "a100-sxm4-80gb"),
        ("A100_PCIE", 40960, "a100-pcie-40gb"),
        ("A100 PCIE", 81920, "a100-pcie-80gb"),
        ("H100_NVL", 95830, "h100-nvl"),
        ("H100 SXM", 81559, "h100-sxm5-80gb"),
        ("MI300X", 196592, "mi300x"),
        ("AMD Instinct MI300X OAM", None, "mi300x"),
        ("A2", 15356, "a2"),
        # The name does not say which: the form factor is missing, or the memory.
        ("H100", 81559, None),
        ("A100", 81920, None),
        ("A100", 40960, None),
        ("A100 SXM4", None, None),
        ("A100 SXM4", 65536, None),
        # A size in the product's own name, and another memory: it is another product.
        ("RTX 3060", 8192, None),
        ("RTX 3080", 12288, None),
        ("Tesla V100", 32768, None),
        # Nobody gave these names to anything.
        ("RTX 6000 Ada Max", None, None),
        ("RTX 40900", None, None),
        ("RTX", None, None),
        ("", None, None),
        ("NVIDIA", None, None),
        ("RTX 5090 魔改 96GB <b>hot</b>", 98304, None),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb", 24576, None),
    ],
)
def test_a_spelling_is_one_gpu_or_none(names: GpuNames, raw: str, mib: int | None, expected: str | None) -> None:
    assert slug(names, raw, None if mib is None else mib * MIB) == expected


def test_decimal_memory_tells_variants_apart_as_well(names: GpuNames) -> None:
    assert slug(names, "A100 SXM4", 80 * GB) == "a100-sxm4-80gb"
    assert slug(names, "NVIDIA H200 NVL", 143 * GB) == "h200-nvl"


def test_a_spelling_that_staff_add_is_known_from_then_on(names: GpuNames) -> None:
    assert slug(names, "Fourty-Ninety") is None
    GpuAlias.objects.create(gpu=Gpu.objects.get(slug="rtx-4090"), name="fourty ninety")
    assert slug(GpuNames.load(), "Fourty-Ninety") == "rtx-4090"


@pytest.mark.parametrize("signs", ["---", "(/)", "_", "?!"])
def test_a_spelling_of_signs_alone_has_the_meaning_that_staff_give_it(names: GpuNames, signs: str) -> None:
    assert slug(names, signs) is None
    GpuAlias.objects.create(gpu=Gpu.objects.get(slug="rtx-4090"), name=signs)
    assert slug(GpuNames.load(), signs) == "rtx-4090"
    assert slug(GpuNames.load(), "~") is None


def test_every_gpu_answers_to_its_own_names_with_its_own_memory(names: GpuNames) -> None:
    for gpu in Gpu.objects.prefetch_related("aliases"):
        memory = gpu.memory_gb_nominal and gpu.memory_gb_nominal * GB
        for spelling in (gpu.name, gpu.slug):
            assert names.find(spelling, memory) == gpu.pk
        for alias in gpu.aliases.all():
            assert names.find(alias.name, memory) in (gpu.pk, None)


def test_names_are_loaded_with_two_queries(names: GpuNames, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(2):  # type: ignore[operator]
        GpuNames.load()


def test_memory_within_seven_per_cent_of_the_datasheet_is_the_variant() -> None:
    names = GpuNames([Known(1, "X 40 GB", ("X",), 40, None), Known(2, "X 80 GB", ("X",), 80, None)])
    assert names.find("X", 40 * 2**30) == names.find("X", 38 * GB) == 1
    assert names.find("X", 80 * GB) == 2
    assert names.find("X", 60 * GB) is None


@pytest.mark.parametrize(
    ("raw", "mib", "code", "words"),
    [
        ("RTX 4090", 8 * 24564, "memory_contradicts", ["name of RTX 4090 (24 GB), but", "reports 191.9 GiB per GPU"]),
        ("H100 SXM", 24576, "memory_contradicts", ["name of H100 SXM5 80 GB, but", "reports 24 GiB per GPU"]),
        ("RTX 3080", 12288, "memory_contradicts", ["name of RTX 3080 10 GB, but", "12 GiB"]),
        ("A100 SXM4", 65536, "memory_contradicts", ["A100 SXM4 40 GB and A100 SXM4 80 GB, but", "64 GiB"]),
        ("A100 SXM4", None, "gpu_ambiguous", ["A100 SXM4 40 GB and A100 SXM4 80 GB: ", "states none"]),
        ("A100", 40960, "gpu_ambiguous", ["A100 PCIe 40 GB and A100 SXM4 40 GB, and the memory", "fits each"]),
        ("Frobnicator", 24576, "unknown_gpu", ["“Frobnicator” is no GPU of the catalog"]),
    ],
)
def test_what_is_refused_says_what_contradicts(
    names: GpuNames, raw: str, mib: int | None, code: str, words: list[str]
) -> None:
    found, detail = names.why_none(raw, None if mib is None else mib * MIB)
    assert found == code
    for part in words:
        assert part in detail


def test_the_names_of_two_makers_are_not_one_name() -> None:
    names = GpuNames([Known(1, "Chosen", ("NVIDIA", "--"), 24, None)])
    assert names.find("nvidia", None) == 1
    assert names.find("AMD Instinct", None) is None
    assert names.find("__", None) is None

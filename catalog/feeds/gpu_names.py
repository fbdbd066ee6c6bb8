"""Which GPU a feed means: by its name, and by its memory only where one name belongs to several."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

_BETWEEN = re.compile(r"[\s_\-/()]+")
_VENDOR = re.compile(r"\A(?:nvidia|amd|intel)?(?:geforce|instinct)?")
_SIZE = re.compile(r"\d+\s?GB\Z")
# Reported figures lie within this of the datasheet's, read as GB or as GiB; the next size is always further away.
_NEAR_PER_CENT = 7
# Rebuilt cards carry up to four times the memory they were made with; beyond that a figure is of another unit, or of
# all GPUs of the machine.
_MOST_TIMES_ITS_OWN = 4


class Known(NamedTuple):
    """What is known of a GPU: its spellings, and its memory as datasheet and driver state it."""

    gpu_id: int
    name: str
    spellings: tuple[str, ...]
    nominal_gb: int | None
    reported_mib: int | None


class GpuNames:
    """The spellings of every GPU. A spelling nobody gave it is unknown, however much it looks like another.

    >>> names = GpuNames([Known(1, "RTX 6000 Ada", ("RTX 6000Ada",), 48, 49140)])
    >>> names.find("nvidia RTX_6000-ADA", None), names.find("RTX 6000", None)
    (1, None)
    """

    def __init__(self, gpus: Iterable[Known]) -> None:
        self._by_key: defaultdict[str, dict[int, Known]] = defaultdict(dict)
        for gpu in gpus:
            for spelling in (gpu.name, *gpu.spellings):
                self._by_key[key(spelling)][gpu.gpu_id] = gpu
        self._by_key.pop("", None)

    @classmethod
    def load(cls) -> "GpuNames":
        """Two queries, whatever the number of GPUs."""
        from catalog.models import Gpu

        return cls(
            Known(
                gpu.pk,
                gpu.name,
                (gpu.slug, *(alias.name for alias in gpu.aliases.all())),
                gpu.memory_gb_nominal,
                gpu.memory_mib_reported,
            )
            for gpu in Gpu.objects.prefetch_related("aliases")
        )

    def find(self, raw_name: str, gpu_memory_bytes: int | None) -> int | None:
        """The GPU's id; None for an unknown spelling, and where the memory does not single out one of several.

        A GPU that has no sizes keeps its name up to four times its memory: a rebuilt RTX 4090 of 48 GB is one. A GPU
        with its size in its name ("RTX 3080 10 GB") is not meant when another memory is reported.
        """
        found = self._meant(raw_name, gpu_memory_bytes)
        return found[0].gpu_id if len(found) == 1 else None

    def knows(self, raw_name: str) -> bool:
        """Whether the name has a meaning; where it has several, an offer's memory may still tell none of them."""
        return key(raw_name) in self._by_key

    def listed(self, raw_name: str) -> str:
        """The GPUs of the name as a sentence has them; empty for an unknown one."""
        return _listed(self._by_key.get(key(raw_name), {}).values())

    def why_none(self, raw_name: str, gpu_memory_bytes: int | None) -> tuple[str, str]:
        """Why `find` gives none: a code, and a sentence that says what to do."""
        if not self.knows(raw_name):
            return "unknown_gpu", f"“{raw_name}” is no GPU of the catalog. Give it an alias, or add the GPU."
        meant = self._meant(raw_name, gpu_memory_bytes)
        named = f"“{raw_name}” is a name of {_listed(meant or self._by_key[key(raw_name)].values())}"
        if meant and gpu_memory_bytes is None:
            return "gpu_ambiguous", f"{named}: their memory tells them apart, and the list states none."
        if meant:
            return "gpu_ambiguous", f"{named}, and the memory that the list reports fits each: the name must tell."
        reported = f"{Decimal(gpu_memory_bytes or 0) / 2**30:.4g} GiB"
        return "memory_contradicts", (
            f"{named}, but the list reports {reported} per GPU. Where a GPU of that name has it, add the GPU with this "
            "name among its aliases."
        )

    def _meant(self, raw_name: str, gpu_memory_bytes: int | None) -> list[Known]:
        found = list(self._by_key.get(key(raw_name), {}).values())
        if gpu_memory_bytes is None:
            return found
        return [gpu for gpu in found if _agrees(gpu, gpu_memory_bytes, of_several=len(found) > 1)]


def key(name: str) -> str:
    """A spelling without what spellings differ in: case, blanks, underscores, hyphens and the maker's name.

    A maker's name alone is kept, and so are signs alone: they are not the same as others.

    >>> key("NVIDIA GeForce RTX  4090") == key("rtx_4090"), key("RTX 6000 Ada") == key("RTX 6000")
    (True, False)
    """
    plain = _BETWEEN.sub("", name.casefold())
    return _VENDOR.sub("", plain) or plain or name.strip()


def _listed(gpus: Iterable[Known]) -> str:
    told = [
        gpu.name if gpu.nominal_gb is None or _SIZE.search(gpu.name) else f"{gpu.name} ({gpu.nominal_gb} GB)"
        for gpu in gpus
    ]
    return " and ".join(filter(None, [", ".join(told[:-1]), *told[-1:]]))


def _agrees(gpu: Known, size_bytes: int, *, of_several: bool) -> bool:
    figures = [figure for figure in _figures(gpu) if figure]
    if not of_several and not _SIZE.search(gpu.name):
        return not figures or size_bytes * 100 <= max(figures) * _MOST_TIMES_ITS_OWN * (100 + _NEAR_PER_CENT)
    return any(abs(size_bytes - figure) * 100 <= figure * _NEAR_PER_CENT for figure in figures)


def _figures(gpu: Known) -> Iterator[int | None]:
    """The memory in bytes as its driver and its datasheet state it, the latter read in both units."""
    yield gpu.reported_mib and gpu.reported_mib * 2**20
    for unit in (10**9, 2**30):
        yield gpu.nominal_gb and gpu.nominal_gb * unit

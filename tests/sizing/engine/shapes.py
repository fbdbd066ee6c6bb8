"""The model shapes of the cases, from published configurations, and short ways to size them."""

import json
from pathlib import Path
from typing import Any

from catalog.units import to_gib
from sizing.engine.estimate import MemoryEstimate, estimate
from sizing.engine.shapes import CacheGroup, LanguageModel
from sizing.engine.workloads import RunModel

HERE = Path(__file__).parent


def _shape(row: dict[str, Any]) -> LanguageModel:
    figures = {name: value for name, value in row.items() if name not in ("source", "cache_groups")}
    return LanguageModel(**figures, cache_groups=tuple(CacheGroup(**group) for group in row["cache_groups"]))


SHAPES = {row["name"]: _shape(row) for row in json.loads((HERE / "cases.json").read_text())}


def plain(layers: int, kv_heads: int, head_dim: int) -> tuple[CacheGroup, ...]:
    return (CacheGroup(layers, 2 * kv_heads * head_dim, kv_heads),)


def size(model: str | LanguageModel, context: int, requests: int = 1, bits: int = 16, gpus: int = 1) -> MemoryEstimate:
    shape = SHAPES[model] if isinstance(model, str) else model
    return estimate(RunModel(shape, bits, context, requests), gpus)


def gib(size_bytes: int) -> str:
    return f"{to_gib(size_bytes)}"


def lines(need: MemoryEstimate) -> dict[str, int]:
    """The bytes of each line on one GPU."""
    return {term.code: term.bytes for term in need.terms}

"""What the observations call things, and what we call them. A name that is not here matches nothing, and is listed."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from catalog.seeding import SEEDS
from catalog.units import from_figure
from sizing.models import AiModel
from sizing.seeding import MODELS

MODEL_SLUGS = {
    "DeepSeek-V2-Lite": "deepseek-v2-lite",
    "DeepSeek-V3/R1": "deepseek-v3",
    "Falcon-40B": "falcon-40b",
    "Gemma-2-27B": "gemma-2-27b",
    "Gemma-3-1B": "gemma-3-1b",
    "GLM-4-9B": "glm-4-9b",
    "gpt-oss-20b": "gpt-oss-20b",
    "gpt-oss-120b": "gpt-oss-120b",
    "Llama-2-7B": "llama-2-7b",
    "Llama-2-13B": "llama-2-13b",
    "Llama-2-70B": "llama-2-70b",
    "Llama-3.1-8B": "llama-3.1-8b",
    "Llama-3.1-70B": "llama-3.1-70b",
    "Llama-3.1-405B": "llama-3.1-405b",
    "Qwen2.5-0.5B": "qwen2.5-0.5b",
    "Qwen2.5-1.5B": "qwen2.5-1.5b",
    "Qwen2.5-3B": "qwen2.5-3b",
    "Qwen2.5-7B": "qwen2.5-7b",
    "Qwen2.5-14B": "qwen2.5-14b",
    "Qwen2.5-32B": "qwen2.5-32b",
    "Qwen2.5-72B": "qwen2.5-72b",
    "Qwen3-0.6B": "qwen3-0.6b",
    "Qwen3-8B": "qwen3-8b",
    "Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen3-32B": "qwen3-32b",
    "FLUX.1": "flux.1-dev",
    "PixArt-Sigma": "pixart-sigma",
    "SD3-medium": "sd3-medium",
    "SDXL": "sdxl-base-1.0",
    "SD-1.5": "sd-1.5",
    # Of the same networks as ours, trained further.
    "SD-1.4": "sd-1.5",
    "SDXL-turbo": "sdxl-base-1.0",
    "SD3.5-large-turbo": "sd3.5-large",
    "whisper-tiny": "whisper-tiny",
    "whisper-small": "whisper-small",
    "whisper-medium": "whisper-medium",
    # large and large-v2 have one configuration.
    "whisper-large": "whisper-large-v2",
    "whisper-large-v2": "whisper-large-v2",
    "whisper-large-v3": "whisper-large-v3",
    "whisper-large-v3-turbo": "whisper-large-v3-turbo",
    "distil-large-v3": "distil-whisper-large-v3",
}
CACHE_SLUGS = {"Mistral-Small-3.1-24B": "mistral-small-24b"}
"""Ours has the same cache, but not the same weights (a vision tower): for readings of the cache alone."""

GPU_SLUGS = {
    "A10 24GB": "a10",
    "A40 48GB": "a40",
    "A100 40GB": "a100-sxm4-40gb",
    "A100 80GB": "a100-sxm4-80gb",
    "H100 80GB": "h100-sxm5-80gb",
    "H20": "h20",
    "L4 24GB": "l4",
    "P100 16GB": "p100-pcie-16gb",
    "T4 16GB": "t4",
    "RTX 2080 Ti 11GB": "rtx-2080-ti",
    "RTX 3080 Ti 12GB": "rtx-3080-ti",
    "RTX 3090 24GB": "rtx-3090",
    "RTX 4060 Ti 16GB": "rtx-4060-ti-16gb",
    "RTX 4080": "rtx-4080",
    "RTX 4090 24GB": "rtx-4090",
}
"""Of variants with the same memory, one."""


@dataclass(frozen=True)
class GpuMemory:
    """What one GPU holds, and where the figure is from."""

    bytes: int
    origin: str


def model_named(name: str, quantity: str) -> AiModel | None:
    """Our model of that name, from the seed file; None for a name that matches none."""
    slug = MODEL_SLUGS.get(name)
    if slug is None and quantity in ("kv_cache", "kv_tokens"):
        slug = CACHE_SLUGS.get(name)
    return None if slug is None else AiModel(**_models()[slug])


def memory_of(gpu_name: str) -> GpuMemory | None:
    """The memory that the catalog counts for a GPU: reported where known, else nominal; else what its name says."""
    slug = GPU_SLUGS.get(gpu_name)
    if slug is not None:
        gpu = _gpus()[slug]
        if gpu["memory_mib_reported"]:
            return GpuMemory(from_figure(Decimal(gpu["memory_mib_reported"]), "MiB"), "reported")
        return GpuMemory(from_figure(Decimal(gpu["memory_gb_nominal"]), "GB"), "nominal")
    stated = re.search(r"(?:^|\s)(\d+) ?GB$", gpu_name)
    return GpuMemory(from_figure(Decimal(stated[1]), "GB"), "nominal, by its name") if stated else None


@lru_cache(maxsize=1)
def _models() -> dict[str, dict[str, Any]]:
    return {row["slug"]: row for row in json.loads(MODELS.read_text(encoding="utf-8"))}


@lru_cache(maxsize=1)
def _gpus() -> dict[str, dict[str, Any]]:
    return {row["slug"]: row for row in json.loads((SEEDS / "gpus.json").read_text(encoding="utf-8"))}

"""Files of models for the tests of brought models."""

import json
from typing import Any

from tests.sizing.checkpoints.published import configs

LLAMA = configs("published.json")["meta-llama/Meta-Llama-3.1-8B"]
LAYERS = 32


def config(**fields: Any) -> bytes:
    """Llama 3.1 8B's config.json with other values; `...` takes a field out."""
    return json.dumps({name: value for name, value in (LLAMA | fields).items() if value is not ...}).encode()


def quantized(**fields: Any) -> bytes:
    return config(quantization_config={"quant_method": "gptq", "bits": 4}, **fields)


def index(total_bytes: int, layers: int = LAYERS) -> bytes:
    """A model.safetensors.index.json that lists a tensor of each layer."""
    names = {
        f"model.layers.{number}.mlp.up_proj.weight": "model-00001-of-00001.safetensors" for number in range(layers)
    }
    return json.dumps({"metadata": {"total_size": total_bytes}, "weight_map": names}).encode()

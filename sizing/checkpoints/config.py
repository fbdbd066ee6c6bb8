"""A Hugging Face config.json as the figures that decide a model's memory."""

from collections.abc import Callable
from dataclasses import dataclass

from sizing.checkpoints.architectures import decoders, deepseek, falcon, hybrid, vision
from sizing.checkpoints.architectures.draft import Draft, Trunk
from sizing.checkpoints.errors import UnreadableModel, shown
from sizing.checkpoints.fields import Fields
from sizing.checkpoints.imported import ImportedModel, Quantization
from sizing.checkpoints.json_reading import CONFIG, read_object
from sizing.engine.errors import UnsizableModel

Reader = Callable[[Draft], Trunk]
VisionReader = Callable[[Draft, Trunk], None]


@dataclass(frozen=True)
class Architecture:
    """How the configuration of one model class is read. `model_types` are the names that belong to it."""

    read: Reader
    model_types: tuple[str, ...]
    vision: VisionReader | None = None


ARCHITECTURES: dict[str, Architecture] = {
    "LlamaForCausalLM": Architecture(decoders.LLAMA.read, ("llama",)),
    "MistralForCausalLM": Architecture(decoders.MISTRAL.read, ("mistral",)),
    "MixtralForCausalLM": Architecture(decoders.MIXTRAL.read, ("mixtral",)),
    "Qwen2ForCausalLM": Architecture(decoders.QWEN2.read, ("qwen2",)),
    "Qwen2MoeForCausalLM": Architecture(decoders.QWEN2_MOE.read, ("qwen2_moe",)),
    "Qwen2_5_VLForConditionalGeneration": Architecture(decoders.QWEN2.read, ("qwen2_5_vl",), vision.qwen2_5),
    "Qwen3ForCausalLM": Architecture(decoders.QWEN3.read, ("qwen3",)),
    "Qwen3MoeForCausalLM": Architecture(decoders.QWEN3_MOE.read, ("qwen3_moe",)),
    "Qwen3VLForConditionalGeneration": Architecture(decoders.QWEN3.read, ("qwen3_vl",), vision.qwen3),
    "Qwen3VLMoeForConditionalGeneration": Architecture(decoders.QWEN3_MOE.read, ("qwen3_vl_moe",), vision.qwen3),
    "Qwen3_5ForCausalLM": Architecture(hybrid.read_qwen, ("qwen3_5_text",)),
    "Qwen3_5MoeForCausalLM": Architecture(hybrid.read_qwen_mixture, ("qwen3_5_moe_text",)),
    "Qwen3_5ForConditionalGeneration": Architecture(hybrid.read_qwen, ("qwen3_5",), vision.qwen3),
    "Qwen3_5MoeForConditionalGeneration": Architecture(hybrid.read_qwen_mixture, ("qwen3_5_moe",), vision.qwen3),
    "MiMoForCausalLM": Architecture(decoders.MIMO.read, ("mimo",)),
    "Gemma2ForCausalLM": Architecture(decoders.GEMMA2.read, ("gemma2",)),
    "Gemma3ForCausalLM": Architecture(decoders.GEMMA3.read, ("gemma3_text",)),
    "Gemma3ForConditionalGeneration": Architecture(decoders.GEMMA3.read, ("gemma3",), vision.siglip),
    "Phi3ForCausalLM": Architecture(decoders.PHI3.read, ("phi3",)),
    "DeepseekV2ForCausalLM": Architecture(deepseek.read_v2, ("deepseek_v2",)),
    "DeepseekV3ForCausalLM": Architecture(deepseek.read_v3, ("deepseek_v3", "kimi_k2")),
    "FalconForCausalLM": Architecture(falcon.read, ("falcon",)),
    "CohereForCausalLM": Architecture(decoders.COHERE.read, ("cohere",)),
    "GptOssForCausalLM": Architecture(decoders.GPT_OSS.read, ("gpt_oss",)),
    "Olmo2ForCausalLM": Architecture(decoders.OLMO2.read, ("olmo2",)),
    "GlmForCausalLM": Architecture(decoders.GLM.read, ("glm",)),
    "Glm4ForCausalLM": Architecture(decoders.GLM4.read, ("glm4",)),
    "Starcoder2ForCausalLM": Architecture(decoders.STARCODER2.read, ("starcoder2",)),
    "NemotronHForCausalLM": Architecture(hybrid.read_nemotron, ("nemotron_h",)),
}

# Architectures that are known not to be understood, each with the field that decides it.
NOT_MODELLED = {
    "DeepseekV4ForCausalLM": (
        ("compress_ratios",),
        "the cache is pooled by a ratio for each layer, which is not modelled",
    ),
    "DeepseekV32ForCausalLM": (("index_topk",), "the cache has an index of its own, which is not modelled"),
    "KimiK3ForConditionalGeneration": (
        ("text_config", "linear_attn_config"),
        "this mixture of latent and linear attention is not modelled",
    ),
    "KimiLinearForCausalLM": (("linear_attn_config",), "this mixture of latent and linear attention is not modelled"),
}
_DECODERS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")


def read_config(data: bytes | str) -> ImportedModel:
    """The figures of a config.json, each with the fields that it came from.

    Raises: UnreadableModel naming the field that is missing, wrong, or not understood.
    """
    values = read_object(data, CONFIG)
    root = Fields(values)
    name, architecture = _architecture(root)
    text = (root.section("text_config") if architecture.vision else None) or root
    draft = Draft(name, root, text)
    quantization = _quantization(root) or (_quantization(text) if text is not root else None)
    dtype, dtype_fields = _dtype(root, text)
    try:
        trunk = architecture.read(draft)
        if architecture.vision is not None:
            architecture.vision(draft, trunk)
        text.refuse_unread()
        root.refuse_unread(repeated_in=text if text is not root else None)
        return draft.finish(trunk, dtype=dtype, quantization=quantization, dtype_fields=dtype_fields)
    except UnsizableModel as error:
        raise UnreadableModel(error.field, shown(str(error)), "Check the sizes in the file") from None


def _architecture(root: Fields) -> tuple[str, Architecture]:
    names = root.texts("architectures")
    model_type = root.text("model_type")
    if names is None:
        return _by_model_type(root, model_type)
    if len(names) != 1:
        raise root.refusal("architectures", f"it must name one model class, not {len(names)}", "Name one")
    name = names[0]
    architecture = ARCHITECTURES.get(name)
    if architecture is None:
        raise _not_understood(root, name)
    if model_type is not None and model_type not in architecture.model_types:
        raise root.refusal(
            "model_type",
            f"“{shown(model_type)}” does not belong to {name}, which is {' or '.join(architecture.model_types)}",
            "Correct one of the two",
        )
    return name, architecture


def _by_model_type(root: Fields, model_type: str | None) -> tuple[str, Architecture]:
    if model_type is None:
        raise root.refusal(
            "architectures", "it is missing, and so is model_type", "Give the config.json of a Hugging Face model"
        )
    for name, architecture in ARCHITECTURES.items():
        if model_type in architecture.model_types:
            return name, architecture
    raise root.refusal(
        "model_type", f"“{shown(model_type)}” is not an architecture understood here", "Enter the figures by hand"
    )


def _not_understood(root: Fields, name: str) -> UnreadableModel:
    path, reason = NOT_MODELLED.get(name, ((), ""))
    at: Fields | None = root
    for section in path[:-1]:
        at = at.section(section) if at is not None else None
    if path and at is not None and at.given(path[-1]):
        return at.refusal(path[-1], f"{reason} ({shown(name)})", "Enter the model's figures by hand")
    if not name.endswith(_DECODERS):
        return root.refusal(
            "architectures",
            f"“{shown(name)}” does not generate text: without a growing cache it is not sized here",
            "Give a model that generates text",
        )
    return root.refusal(
        "architectures", f"“{shown(name)}” is not an architecture understood here", "Enter the figures by hand"
    )


def _dtype(root: Fields, text: Fields) -> tuple[str | None, tuple[str, ...]]:
    for fields in (text, root):
        for name in ("dtype", "torch_dtype"):
            stated = fields.text(name)
            if stated is not None:
                return shown(stated), (fields.name_of(name),)
    return None, ()


def _quantization(fields: Fields) -> Quantization | None:
    section = fields.section("quantization_config")
    if section is None:
        return None
    method = section.text("quant_method") or section.text("quant_algo")
    if method is None:
        raise section.refusal("quant_method", "it is missing", "Give the method of quantization")
    bits, names = _quantized_bits(section)
    names = ("quant_method", *names)
    return Quantization(shown(method), bits, tuple(section.name_of(name) for name in names))


def _quantized_bits(section: Fields) -> tuple[int | None, tuple[str, ...]]:
    """Bits of a weight where the file states them. They size nothing: scales and unquantized layers come on top."""
    for name in ("bits", "w_bit"):
        if section.given(name):
            return section.whole(name, most=32), (name,)
    for name, bits in (("load_in_4bit", 4), ("load_in_8bit", 8)):
        if section.flag(name, False):
            return bits, (name,)
    return {"fp8": 8, "mxfp4": 4}.get(section.text("quant_method") or ""), ()

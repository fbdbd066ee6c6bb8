"""Hybrids: few layers with attention among linear-attention or state-space layers of constant memory.

Source: Qwen3.5 and NemotronH classes of the transformers library; Gated DeltaNet (arXiv:2412.06464), Mamba-2
(arXiv:2405.21060), Nemotron-H (arXiv:2504.03624).
"""

from dataclasses import dataclass

from sizing.checkpoints.architectures.attention import FULL, layer_kinds
from sizing.checkpoints.architectures.decoders import qwen_mixture
from sizing.checkpoints.architectures.draft import Draft, Trunk
from sizing.checkpoints.architectures.mixture import Mixture, Mlp, dense, mixed
from sizing.engine.shapes import CacheGroup

LINEAR = "linear_attention"
CONVOLUTION_BYTES = 2
STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_LETTERS = {"M": "Mamba-2", "*": "attention", "-": "MLP", "E": "experts"}
_BLOCKS = {
    "mamba": "M",
    "attention": "*",
    "full_attention": "*",
    "mlp": "-",
    "moe": "E",
}


@dataclass(frozen=True)
class Heads:
    """One attention layer. `query_factor` is 2 where the query projection makes an output gate too."""

    kv_heads: int
    width: int
    query_factor: int = 1
    norms: int = 0


def read_qwen(draft: Draft) -> Trunk:
    """Qwen3.5, dense."""
    trunk, attention = _qwen_layers(draft)
    width = draft.intermediate = draft.whole("intermediate_size", "intermediate_size")
    dense(draft, trunk, Mlp(), width, trunk.layers)
    _qwen_draft_head(draft, trunk, attention + Mlp().parameters(trunk.hidden, width))
    return trunk


def read_qwen_mixture(draft: Draft) -> Trunk:
    """Qwen3.5 with experts."""
    trunk, attention = _qwen_layers(draft)
    mixture = qwen_mixture(draft, trunk)
    if mixture.layers != trunk.layers:
        raise draft.text.refusal(
            "mlp_only_layers", "layers without experts are not understood for this architecture", "Enter it by hand"
        )
    mixed(draft, trunk, mixture, names=("num_experts", "moe_intermediate_size"))
    expert = mixture.mlp.parameters(trunk.hidden, mixture.width)
    shared = mixture.mlp.parameters(trunk.hidden, mixture.shared_width) + trunk.hidden if mixture.shared_width else 0
    layer = mixture.experts * (expert + trunk.hidden) + shared
    drafts = _qwen_draft_head(draft, trunk, attention + layer)
    if draft.idle_parameters is not None:
        draft.idle_parameters += drafts * (mixture.experts - mixture.per_token) * expert
    return trunk


def read_nemotron(draft: Draft) -> Trunk:
    """Nemotron-H and Nemotron 3: one kind of block in each layer, spelled as a string of letters."""
    text = draft.text
    trunk = draft.trunk(tied=False)
    text.must_be("tie_word_embeddings", False, "this architecture does not share the vocabulary's matrix")
    pattern, name = _pattern(draft, trunk)
    text.must_be("attention_bias", False, "its biases are not counted")
    text.must_be("mamba_proj_bias", False, "its biases are not counted")
    text.must_be("moe_latent_size", 0, "experts behind a latent projection are not counted")
    text.must_be("num_nextn_predict_layers", 0, "its draft layers are not counted")
    text.must_be("sliding_window", 0, "it has no window in this architecture")
    text.ignore("expand", "rms_norm_eps")
    width = "attention_head_dim" if text.given("attention_head_dim") else "head_dim"
    kv_heads = draft.kv_heads = draft.whole("kv_heads", "num_key_value_heads")
    head_dim = draft.head_dim = draft.whole("head_dim", width, 128)
    draft.embeddings(trunk)
    attention, mambas = pattern.count("*"), pattern.count("M")
    heads = Heads(kv_heads, head_dim)
    _plain_attention(draft, trunk, heads, attention, names=(name, "num_key_value_heads", width))
    if mambas:
        _mamba(draft, trunk, mambas, name)
    if "-" in pattern:
        wide = draft.intermediate = draft.whole("intermediate_size", "intermediate_size")
        mlp = Mlp(gated=False, bias=text.flag("mlp_bias", False))
        dense(draft, trunk, mlp, wide, pattern.count("-"))
    elif text.given("intermediate_size"):
        draft.intermediate = draft.whole("intermediate_size", "intermediate_size")
    if "E" in pattern:
        _nemotron_experts(draft, trunk, pattern.count("E"))
    else:
        text.ignore("n_routed_experts", "n_shared_experts", "moe_intermediate_size", "num_experts_per_tok")
        text.ignore("moe_shared_expert_intermediate_size", "moe_shared_expert_overlap")
    draft.part("Norms", (trunk.layers + 1) * trunk.hidden, f"{trunk.layers + 1:,} vectors × hidden_size")
    return trunk


def _qwen_layers(draft: Draft) -> tuple[Trunk, int]:
    """Everything but the networks: embeddings, both kinds of attention, norms. The last figure is one full layer's."""
    text = draft.text
    trunk = draft.trunk(tied=False)
    text.must_be("attn_output_gate", True, "its query projection is another one")
    text.must_be("attention_bias", False, "its biases are not counted")
    kv_heads, head_dim = draft.heads_of(trunk, head_dim=256)
    kinds = layer_kinds(draft, trunk, (FULL, LINEAR))
    interval = text.whole_or_none("full_attention_interval")
    if kinds is not None:
        full, name = kinds.count(FULL), "layer_types"
    elif interval is not None:
        full, name = trunk.layers // interval, "full_attention_interval"
    else:
        raise text.refusal("layer_types", "it is missing, and so is full_attention_interval", "Give one of the two")
    draft.embeddings(trunk)
    heads = Heads(kv_heads, head_dim, query_factor=2, norms=2 * head_dim)
    attention = _plain_attention(draft, trunk, heads, full, names=(name, "num_key_value_heads", "head_dim"))
    if full < trunk.layers:
        _gated_delta(draft, trunk, trunk.layers - full, name)
    vectors = 2 * trunk.layers + 1
    draft.part("Norms", vectors * trunk.hidden, f"{vectors:,} vectors × hidden_size")
    return trunk, attention


def _plain_attention(draft: Draft, trunk: Trunk, heads: Heads, layers: int, *, names: tuple[str, ...]) -> int:
    """Attention of the layers that have it: parameters, cache and adapters. Gives the parameters of one layer."""
    kv_heads, width, query_factor = heads.kv_heads, heads.width, heads.query_factor
    if trunk.heads % kv_heads:
        raise draft.text.refusal(
            "num_key_value_heads", f"{kv_heads:,} KV heads do not divide {trunk.heads:,} attention heads", "Correct it"
        )
    hidden, queries, keys = trunk.hidden, trunk.heads * width, kv_heads * width
    one = hidden * (query_factor * queries + 2 * keys) + queries * hidden + heads.norms
    if not layers:
        raise draft.text.refusal(names[0], "no layer has attention, so there is no KV cache", "Enter it by hand")
    draft.part("Attention", layers * one, f"{layers:,} layers with attention × {one:,}")
    draft.cache(
        [CacheGroup(layers, 2 * keys, kv_heads)],
        *names,
        rule=f"2 × KV heads × head dimension for the {layers:,} of {trunk.layers:,} layers that have attention",
    )
    draft.projection("q_proj", ("q",), hidden, query_factor * queries, layers)
    draft.projection("k_proj", ("k",), hidden, keys, layers)
    draft.projection("v_proj", ("v",), hidden, keys, layers)
    draft.projection("o_proj", ("o",), queries, hidden, layers)
    return one


def _gated_delta(draft: Draft, trunk: Trunk, layers: int, layout: str) -> None:
    text, hidden = draft.text, trunk.hidden
    names = (
        "linear_num_key_heads",
        "linear_key_head_dim",
        "linear_num_value_heads",
        "linear_value_head_dim",
        "linear_conv_kernel_dim",
    )
    key_heads, key_width, value_heads, value_width, kernel = (text.whole(name) for name in names)
    keys, values = key_heads * key_width, value_heads * value_width
    channels = 2 * keys + values
    one = hidden * (channels + values + 2 * value_heads) + channels * kernel + 2 * value_heads + value_width
    one += values * hidden
    draft.part("Linear attention", layers * one, f"{layers:,} layers with linear attention × {one:,}")
    size, stated = _state_bytes(draft, "mamba_ssm_dtype")
    state = channels * kernel * CONVOLUTION_BYTES + value_heads * key_width * value_width * size
    _constant_state(draft, layers, state, layout, *names, *stated)


def _mamba(draft: Draft, trunk: Trunk, layers: int, layout: str) -> None:
    text, hidden = draft.text, trunk.hidden
    names = ("mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel")
    heads, width, groups, size, kernel = (text.whole(name) for name in names)
    inner = heads * width
    channels = inner + 2 * groups * size
    projected = inner + channels + heads
    one = hidden * projected + channels * kernel + 3 * heads + inner + inner * hidden
    if text.flag("use_conv_bias", True):
        one += channels
    if text.flag("use_bias", False):
        one += projected + hidden
    draft.part("Mamba-2", layers * one, f"{layers:,} Mamba-2 layers × {one:,}")
    number_bytes, stated = _state_bytes(draft, "mamba_ssm_cache_dtype")
    state = channels * kernel * CONVOLUTION_BYTES + inner * size * number_bytes
    _constant_state(draft, layers, state, layout, *names, *stated)


def _state_bytes(draft: Draft, name: str) -> tuple[int, tuple[str, ...]]:
    """Bytes of one number of the state. Where the file is silent, the larger of the two usual kinds is reserved."""
    stated = draft.text.text(name)
    if stated is None:
        return STATE_BYTES["float32"], ()
    if stated not in STATE_BYTES:
        raise draft.text.refusal(name, f"“{stated[:40]}” is not one of {', '.join(STATE_BYTES)}", "Correct it")
    return STATE_BYTES[stated], (name,)


def _constant_state(draft: Draft, layers: int, state: int, *names: str) -> None:
    draft.state_bytes = layers * state
    draft.left_out.append("Fine-tuning: the activations of layers with a constant state are not modelled.")
    draft.cache_note = (
        f"{layers:,} layers keep a constant state of {state:,} bytes per request, whatever the context: a 16-bit "
        "convolution window and the recurrent state."
    )
    draft.note(
        "state_bytes_per_sequence",
        layers * state,
        *names,
        rule=f"{layers:,} layers × {state:,} bytes: convolution window (16 bits), recurrent state (as stated, or 32)",
    )


def _qwen_draft_head(draft: Draft, trunk: Trunk, layer: int) -> int:
    """Layers that predict further tokens: in the checkpoint, with full attention, sharing the vocabulary."""
    text = draft.text
    text.must_be("mtp_use_dedicated_embeddings", False, "its own vocabulary is not counted")
    drafts = text.whole("mtp_num_hidden_layers", 0, least=0, most=100)
    if drafts:
        joined = 2 * trunk.hidden * trunk.hidden + 3 * trunk.hidden
        draft.part(
            "Draft head (next tokens)",
            drafts * (layer + 2 * trunk.hidden) + joined,
            f"mtp_num_hidden_layers {drafts:,} × one full layer + 2 × hidden_size × hidden_size + 3 norms",
        )
    return drafts


def _pattern(draft: Draft, trunk: Trunk) -> tuple[str, str]:
    text = draft.text
    blocks = text.texts("layers_block_type")
    if text.given("hybrid_override_pattern"):
        name = "hybrid_override_pattern"
        pattern = text.text(name) or ""
        for letter in pattern:
            if letter not in _LETTERS:
                known = ", ".join(f"{letter} {words}" for letter, words in _LETTERS.items())
                raise text.refusal(name, f"“{letter}” is not one of {known}", "Enter the figures by hand")
    elif blocks is not None:
        name = "layers_block_type"
        for block in blocks:
            if block not in _BLOCKS:
                raise text.refusal(name, f"“{block[:40]}” is not one of {', '.join(_BLOCKS)}", "Enter it by hand")
        pattern = "".join(_BLOCKS[block] for block in blocks)
    else:
        raise text.refusal("hybrid_override_pattern", "it is missing", "Give the pattern of the layers")
    if len(pattern) != trunk.layers:
        raise text.refusal(
            name,
            f"it describes {len(pattern):,} layers, num_hidden_layers is {trunk.layers:,}",
            "Correct one of the two",
        )
    return pattern, name


def _nemotron_experts(draft: Draft, trunk: Trunk, layers: int) -> None:
    text = draft.text
    text.must_be("n_shared_experts", 1, "its shared experts are built differently")
    text.ignore("moe_shared_expert_overlap")
    mixture = Mixture(
        layers=layers,
        experts=text.whole("n_routed_experts", most=100_000),
        per_token=text.whole("num_experts_per_tok"),
        width=text.whole("moe_intermediate_size"),
        mlp=Mlp(gated=False, bias=text.flag("mlp_bias", False)),
        correction=True,
        shared_width=text.whole("moe_shared_expert_intermediate_size"),
    )
    mixed(draft, trunk, mixture, names=("n_routed_experts", "moe_intermediate_size"))

"""Falcon: one fused projection for queries, keys and values, and few KV heads by one of two fields.

Source: FalconConfig and FalconForCausalLM of the transformers library.
"""

from sizing.checkpoints.architectures.attention import Windows, keep
from sizing.checkpoints.architectures.draft import Draft, Trunk
from sizing.checkpoints.architectures.mixture import Mlp, dense

_CONTEXT = 2048


def read(draft: Draft) -> Trunk:
    text = draft.text
    trunk = draft.trunk(context=_CONTEXT, tied=True)
    bias = text.flag("bias", False)
    newer = text.flag("new_decoder_architecture", False)
    parallel = text.flag("parallel_attn", True)
    text.flag("alibi", False)
    width = draft.head_dim = draft.divided_width(trunk)
    kv_heads = draft.kv_heads = _kv_heads(draft, trunk, newer)
    keep(draft, trunk, Windows(), kv_heads, width)
    draft.embeddings(trunk)
    layers, hidden = trunk.layers, trunk.hidden
    fused = hidden + 2 * kv_heads * width
    attention = hidden * fused + hidden * hidden + (fused + hidden if bias else 0)
    draft.part(
        "Attention",
        layers * attention,
        f"{layers:,} layers × (hidden_size × (hidden_size + 2 × KV heads × head width) + hidden_size × hidden_size)",
    )
    draft.projection("query_key_value", ("q", "k", "v"), hidden, fused, layers)
    draft.projection("dense", ("o",), hidden, hidden, layers)
    wide = draft.intermediate = text.whole("ffn_hidden_size", 4 * hidden)
    stated = text.given("ffn_hidden_size")
    name = "ffn_hidden_size" if stated else "hidden_size"
    draft.note("intermediate_size", wide, name, rule="as stated" if stated else "4 × hidden_size")
    mlp = Mlp(gated=False, bias=bias, up="dense_h_to_4h", down="dense_4h_to_h")
    dense(draft, trunk, mlp, wide, layers, name="MLP width")
    norms = layers * _norms(draft, newer, parallel) + 1
    draft.part("Norms", 2 * norms * hidden, f"{norms:,} norms of 2 vectors × hidden_size")
    return trunk


def _kv_heads(draft: Draft, trunk: Trunk, newer: bool) -> int:
    """Old Falcons share one head by multi_query, whatever num_kv_heads says; new ones state the number."""
    text = draft.text
    shared = text.flag("multi_query", True)
    stated = text.whole_or_none("num_kv_heads")
    if newer:
        if stated is None:
            raise text.refusal("num_kv_heads", "it is missing, and new_decoder_architecture is true", "Give it")
        if trunk.heads % stated:
            raise text.refusal("num_kv_heads", f"{stated:,} does not divide {trunk.heads:,} heads", "Correct it")
        draft.note("kv_heads", stated, "num_kv_heads")
        return stated
    kv_heads = 1 if shared else trunk.heads
    draft.note("kv_heads", kv_heads, "multi_query", rule="1 with multi_query, else all attention heads")
    return kv_heads


def _norms(draft: Draft, newer: bool, parallel: bool) -> int:
    stated = draft.text.whole_or_none("num_ln_in_parallel_attn", most=2)
    if newer:
        return 2 if stated is None else stated
    return 1 if parallel else 2

"""DeepSeek V2 and V3: multi-head latent attention (MLA) and a mixture of experts with dense first layers.

Source: DeepSeek-V2 (arXiv:2405.04434) and DeepSeek-V3 (arXiv:2412.19437); the classes of the transformers library.
"""

from sizing.checkpoints.architectures.draft import Draft, Trunk
from sizing.checkpoints.architectures.mixture import Mixture, Mlp, dense, mixed
from sizing.engine.shapes import CacheGroup


def read_v2(draft: Draft) -> Trunk:
    draft.text.must_be("scoring_func", "softmax", "the routing is another one")
    return _read(draft, correction=False)


def read_v3(draft: Draft) -> Trunk:
    """Kimi K2 is of this shape too. The routing bias of each expert is stored like a weight."""
    draft.text.must_be("topk_method", "noaux_tc", "the routing is another one")
    return _read(draft, correction=True)


def _read(draft: Draft, *, correction: bool) -> Trunk:
    text = draft.text
    trunk = draft.trunk(tied=False)
    draft.kv_heads = draft.whole("kv_heads", "num_key_value_heads", trunk.heads)
    draft.embeddings(trunk)
    attention = _latent_attention(draft, trunk)
    width = draft.intermediate = draft.whole("intermediate_size", "intermediate_size")
    mixture = _mixture(draft, trunk, correction)
    dense(draft, trunk, Mlp(), width, trunk.layers - mixture.layers)
    if mixture.layers:
        mixed(draft, trunk, mixture, names=("n_routed_experts", "moe_intermediate_size"))
    vectors = 2 * trunk.layers + 1
    draft.part("Norms", vectors * trunk.hidden, f"{vectors:,} vectors × hidden_size")
    further = draft.draft_layers = text.whole("num_nextn_predict_layers", 0, least=0, most=100)
    if further:
        layer = attention + _mixture_parameters(trunk, mixture) + 2 * trunk.hidden * trunk.hidden + 5 * trunk.hidden
        draft.left_out.append(
            f"num_nextn_predict_layers: {further:,} draft layers for further tokens, {further * layer:,} parameters. "
            "They are loaded only where the server predicts several tokens at once."
        )
    return trunk


def _latent_attention(draft: Draft, trunk: Trunk) -> int:
    """Adds the compressed projections and the latent cache; gives the parameters of one layer's attention."""
    text, layers, hidden, heads = draft.text, trunk.layers, trunk.hidden, trunk.heads
    rank = draft.whole("kv_lora_rank", "kv_lora_rank")
    rope = draft.whole("qk_rope_head_dim", "qk_rope_head_dim")
    nope = draft.whole("qk_nope_head_dim", "qk_nope_head_dim")
    value = draft.whole("v_head_dim", "v_head_dim")
    biases = text.flag("attention_bias", False)
    if not text.mentioned("q_lora_rank"):
        raise text.refusal(
            "q_lora_rank", "it is missing", "Give it as a number, or null where queries are not compressed"
        )
    query_rank = text.whole_or_none("q_lora_rank")
    query_width = heads * (nope + rope)
    if query_rank is None:
        query = hidden * query_width
        draft.projection("q_proj", ("q",), hidden, query_width, layers)
    else:
        query = hidden * query_rank + query_rank + query_rank * query_width + (query_rank if biases else 0)
        draft.projection("q_a_proj", ("q",), hidden, query_rank, layers)
        draft.projection("q_b_proj", ("q",), query_rank, query_width, layers)
    key_value = hidden * (rank + rope) + rank + rank * heads * (nope + value)
    output = heads * value * hidden
    one = query + key_value + output + (rank + rope + hidden if biases else 0)
    draft.projection("kv_a_proj_with_mqa", ("k", "v"), hidden, rank + rope, layers)
    draft.projection("kv_b_proj", ("k", "v"), rank, heads * (nope + value), layers)
    draft.projection("o_proj", ("o",), heads * value, hidden, layers)
    draft.part(
        "Latent attention",
        layers * one,
        f"{layers:,} layers × (query + compressed key and value with their norms + output) = {layers:,} × {one:,}",
    )
    draft.cache(
        [CacheGroup(layers, rank + rope)],
        "num_hidden_layers",
        "kv_lora_rank",
        "qk_rope_head_dim",
        rule="kv_lora_rank + qk_rope_head_dim for each layer, once for all heads",
    )
    draft.cache_note = (
        f"Multi-head latent attention: {rank:,} + {rope:,} numbers per token and layer, stored once for all heads. An "
        "engine that stores expanded keys and values needs more."
    )
    return one


def _mixture(draft: Draft, trunk: Trunk, correction: bool) -> Mixture:
    text = draft.text
    first = text.whole("first_k_dense_replace", least=0)
    step = text.whole("moe_layer_freq", 1)
    width = text.whole("moe_intermediate_size")
    shared = text.whole_or_none("n_shared_experts", least=0) or 0
    return Mixture(
        layers=sum(1 for number in range(trunk.layers) if number >= first and number % step == 0),
        experts=text.whole("n_routed_experts", most=100_000),
        per_token=text.whole("num_experts_per_tok"),
        width=width,
        correction=correction,
        shared_width=shared * width,
    )


def _mixture_parameters(trunk: Trunk, mixture: Mixture) -> int:
    expert = mixture.mlp.parameters(trunk.hidden, mixture.width)
    router = mixture.experts * (trunk.hidden + (1 if mixture.correction else 0))
    return mixture.experts * expert + router + mixture.mlp.parameters(trunk.hidden, mixture.shared_width)

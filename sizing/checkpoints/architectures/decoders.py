"""Decoders of one kind of layer: ordinary attention, then a dense network or a mixture of experts.

Source: the classes of the same names in the transformers library; the counts agree with its models built without
memory (meta device).
"""

from collections.abc import Callable
from dataclasses import dataclass

from sizing.checkpoints.architectures import attention
from sizing.checkpoints.architectures.draft import Draft, Trunk
from sizing.checkpoints.architectures.mixture import Mixture, Mlp, dense, mixed

MixtureRule = Callable[[Draft, Trunk], Mixture]


_GATED = Mlp()


@dataclass(frozen=True)
class Decoder:
    """What tells one architecture from another. The defaults are a Llama.

    Shape: `bias_field` names the field that switches attention biases, `bias` is what holds without it; `output_bias`
    says whether the output projection has one too. `norms` is the number of norms in a layer, each of `norm_vectors`
    vectors (two with a bias). `qk_norm` is "head" (one vector per head width), "all" (over all heads) or "".
    `head_dim`, `kv_heads`, `vocab`, `context`, `heads`, `tied` are the architecture's defaults for fields left out.
    """

    windows: attention.WindowRule = attention.no_windows
    bias_field: str | None = "attention_bias"
    bias: bool = False
    output_bias: bool = True
    mlp_bias_field: str | None = None
    mlp: Mlp = _GATED
    fused_qkv: str | None = None
    norms: int = 2
    norm_vectors: int = 1
    qk_norm: str = ""
    mixture: MixtureRule | None = None
    sinks: bool = False
    head_dim: int | None = None
    kv_heads: int | None = None
    heads: int | None = None
    vocab: int | None = None
    context: int | None = None
    tied: bool | None = False
    longer_context_field: str | None = None
    expected: tuple[tuple[str, bool | int | str, str], ...] = ()

    def read(self, draft: Draft) -> Trunk:
        trunk = draft.trunk(
            vocab=self.vocab, context=self.context, heads=self.heads, tied=self.tied, context_field=self._context(draft)
        )
        for name, value, reason in self.expected:
            draft.text.must_be(name, value, reason)
        kv_heads, width = draft.heads_of(trunk, kv_heads=self.kv_heads, head_dim=self.head_dim)
        attention.keep(draft, trunk, self.windows(draft, trunk), kv_heads, width)
        draft.embeddings(trunk)
        self._attention(draft, trunk, kv_heads, width)
        self._feed_forward(draft, trunk)
        vectors = (self.norms * trunk.layers + 1) * self.norm_vectors
        draft.part("Norms", vectors * trunk.hidden, f"{vectors:,} vectors × hidden_size")
        return trunk

    def _context(self, draft: Draft) -> str:
        longer = self.longer_context_field
        if longer is None or not draft.text.given(longer):
            return "max_position_embeddings"
        draft.text.ignore("max_position_embeddings")
        return longer

    def _attention(self, draft: Draft, trunk: Trunk, kv_heads: int, width: int) -> None:
        bias = draft.text.flag(self.bias_field, self.bias) if self.bias_field else self.bias
        layers, hidden = trunk.layers, trunk.hidden
        queries, keys = trunk.heads * width, kv_heads * width
        weights = hidden * (queries + 2 * keys) + queries * hidden
        biases = (queries + 2 * keys + (hidden if self.output_bias else 0)) if bias else 0
        draft.part(
            "Attention",
            layers * (weights + biases),
            f"{layers:,} layers × (2 × hidden_size × heads × head_dim + 2 × hidden_size × KV heads × head_dim)"
            + (" + biases" if bias else ""),
        )
        norm = {"": 0, "head": 2 * width, "all": queries + keys}[self._qk_norm(draft)]
        draft.part("Query and key norms", layers * norm, f"{layers:,} layers × {norm:,}")
        if self.sinks:
            draft.part("Attention sinks", layers * trunk.heads, f"{layers:,} layers × num_attention_heads")
        if self.fused_qkv is not None:
            draft.projection(self.fused_qkv, ("q", "k", "v"), hidden, queries + 2 * keys, layers)
        else:
            draft.projection("q_proj", ("q",), hidden, queries, layers)
            draft.projection("k_proj", ("k",), hidden, keys, layers)
            draft.projection("v_proj", ("v",), hidden, keys, layers)
        draft.projection("o_proj", ("o",), queries, hidden, layers)

    def _qk_norm(self, draft: Draft) -> str:
        return self.qk_norm

    def _feed_forward(self, draft: Draft, trunk: Trunk) -> None:
        if self.mixture is None:
            width = draft.intermediate = draft.whole("intermediate_size", "intermediate_size")
            dense(draft, trunk, self._mlp(draft), width, trunk.layers)
            return
        mixture = self.mixture(draft, trunk)
        plain = trunk.layers - mixture.layers
        if draft.text.given("intermediate_size"):
            draft.intermediate = draft.whole("intermediate_size", "intermediate_size")
        elif plain:
            draft.whole("intermediate_size", "intermediate_size")  # refuses: some layers need it
        if plain and draft.intermediate is not None:
            dense(draft, trunk, self.mlp, draft.intermediate, plain)
        if mixture.layers:
            mixed(draft, trunk, mixture, names=_expert_fields(draft))

    def _mlp(self, draft: Draft) -> Mlp:
        if self.mlp_bias_field is None:
            return self.mlp
        bias = draft.text.flag(self.mlp_bias_field, self.mlp.bias)
        return Mlp(self.mlp.gated, bias, self.mlp.up, self.mlp.down, self.mlp.fused)


@dataclass(frozen=True)
class CohereDecoder(Decoder):
    """Command-R: one norm for attention and network together, and norms of queries and keys where the file says so."""

    def _qk_norm(self, draft: Draft) -> str:
        return "all" if draft.text.flag("use_qk_norm", False) else ""


@dataclass(frozen=True)
class MimoDecoder(Decoder):
    """MiMo: a Qwen2 with layers that predict further tokens, which its checkpoint stores like the others."""

    def read(self, draft: Draft) -> Trunk:
        trunk = super().read(draft)
        drafts = draft.text.whole("num_nextn_predict_layers", 0, least=0, most=100)
        if drafts and draft.kv_heads is not None and draft.head_dim is not None and draft.intermediate is not None:
            keys, queries = draft.kv_heads * draft.head_dim, trunk.heads * draft.head_dim
            layer = 2 * trunk.hidden * (queries + keys) + queries + 2 * keys
            layer += self.mlp.parameters(trunk.hidden, draft.intermediate)
            joined = 2 * trunk.hidden * trunk.hidden + 5 * trunk.hidden
            draft.part(
                "Draft head (next tokens)",
                drafts * (layer + joined),
                f"{drafts:,} layers like the others + 2 × hidden_size × hidden_size + 5 norms",
            )
        return trunk


def _expert_fields(draft: Draft) -> tuple[str, str]:
    count = "num_local_experts" if draft.text.given("num_local_experts") else "num_experts"
    width = "moe_intermediate_size" if draft.text.given("moe_intermediate_size") else "intermediate_size"
    return count, width


def _mixtral(draft: Draft, trunk: Trunk) -> Mixture:
    text = draft.text
    return Mixture(
        layers=trunk.layers,
        experts=text.whole("num_local_experts", most=100_000),
        per_token=text.whole("num_experts_per_tok"),
        width=text.whole("intermediate_size"),
    )


def _gpt_oss(draft: Draft, trunk: Trunk) -> Mixture:
    text = draft.text
    return Mixture(
        layers=trunk.layers,
        experts=text.whole("num_local_experts", most=100_000),
        per_token=text.whole("num_experts_per_tok"),
        width=text.whole("intermediate_size"),
        mlp=Mlp(bias=True),
        router_bias=True,
    )


def qwen_mixture(draft: Draft, trunk: Trunk) -> Mixture:
    """Qwen: a layer has experts unless it is listed in mlp_only_layers or falls between decoder_sparse_step."""
    text = draft.text
    step = text.whole("decoder_sparse_step", 1)
    plain = set(text.wholes("mlp_only_layers"))
    layers = sum(1 for number in range(trunk.layers) if number not in plain and (number + 1) % step == 0)
    shared = text.whole_or_none("shared_expert_intermediate_size", least=0) or 0
    return Mixture(
        layers=layers,
        experts=text.whole("num_experts", most=100_000),
        per_token=text.whole("num_experts_per_tok"),
        width=text.whole("moe_intermediate_size"),
        shared_width=shared,
        shared_gate=bool(shared),
    )


_LAYER_NORM = 2

LLAMA = Decoder(mlp_bias_field="mlp_bias")
MISTRAL = Decoder(windows=attention.every_layer, bias_field=None)
MIXTRAL = Decoder(windows=attention.every_layer, bias_field=None, mixture=_mixtral)
QWEN2 = Decoder(windows=attention.upper_layers, bias_field=None, bias=True, output_bias=False)
QWEN2_MOE = Decoder(
    windows=attention.upper_layers, bias_field="qkv_bias", bias=True, output_bias=False, mixture=qwen_mixture
)
QWEN3 = Decoder(windows=attention.upper_layers, qk_norm="head", head_dim=128)
QWEN3_MOE = Decoder(windows=attention.upper_layers, qk_norm="head", mixture=qwen_mixture)
MIMO = MimoDecoder(windows=attention.upper_layers, bias=True, output_bias=False)
GEMMA2 = Decoder(
    windows=attention.one_full_in(2, window=4096), norms=4, head_dim=256, tied=True, vocab=256_000, context=8192
)
GEMMA3 = Decoder(
    windows=attention.one_full_in(6),
    norms=4,
    qk_norm="head",
    head_dim=256,
    tied=True,
    vocab=262_208,
    context=131_072,
    heads=8,
    kv_heads=4,
    expected=(("use_bidirectional_attention", False, "its window is another one"),),
)
PHI3 = Decoder(
    windows=attention.every_layer,
    bias_field=None,
    fused_qkv="qkv_proj",
    mlp=Mlp(fused="gate_up_proj"),
    expected=(("full_attn_mod", 1, "it says which layers attend to everything"),),
)
COHERE = CohereDecoder(norms=1, tied=True, longer_context_field="model_max_length")
GPT_OSS = Decoder(windows=attention.one_full_in(2), bias=True, head_dim=64, mixture=_gpt_oss, sinks=True)
OLMO2 = Decoder(qk_norm="all")
GLM = Decoder(bias=True, output_bias=False, head_dim=128, mlp=Mlp(fused="gate_up_proj"))
GLM4 = Decoder(bias=True, output_bias=False, head_dim=128, norms=4, mlp=Mlp(fused="gate_up_proj"))
STARCODER2 = Decoder(
    windows=attention.every_layer,
    bias_field="use_bias",
    bias=True,
    mlp_bias_field="use_bias",
    mlp=Mlp(gated=False, bias=True, up="c_fc", down="c_proj"),
    norm_vectors=_LAYER_NORM,
    tied=None,
    expected=(
        ("mlp_type", "default", "its network is built differently"),
        ("norm_type", "layer_norm", "its norms are built differently"),
    ),
)

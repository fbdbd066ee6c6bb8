"""Feed-forward layers: dense ones, and mixtures of routed and shared experts."""

from dataclasses import dataclass

from sizing.checkpoints.architectures.draft import Draft, Trunk

_MLP_WORDS = {"gate", "up", "down"}


@dataclass(frozen=True)
class Mlp:
    """How one feed-forward network is built: gated (three matrices) or not (two), fused, with or without biases."""

    gated: bool = True
    bias: bool = False
    up: str = "up_proj"
    down: str = "down_proj"
    fused: str | None = None

    def parameters(self, hidden: int, width: int) -> int:
        into = 2 if self.gated else 1
        biases = into * width + hidden if self.bias else 0
        return (into + 1) * hidden * width + biases

    def rule(self, width_field: str) -> str:
        matrices = "3 (gate, up, down)" if self.gated else "2 (up, down)"
        return f"{matrices} × hidden_size × {width_field}" + (" + biases" if self.bias else "")


@dataclass(frozen=True)
class Mixture:
    """The experts of a mixture's layers. All of them are stored, whichever are chosen for a token.

    Shape: `layers` is the number of layers with experts; `correction` adds one routing bias for each expert.
    """

    layers: int
    experts: int
    per_token: int
    width: int
    mlp: Mlp = Mlp()
    router_bias: bool = False
    correction: bool = False
    shared_width: int = 0
    shared_gate: bool = False


def dense(draft: Draft, trunk: Trunk, mlp: Mlp, width: int, layers: int, *, name: str = "intermediate_size") -> None:
    """The dense feed-forward networks of `layers` layers. Call it before `mixed`."""
    draft.part("MLP", layers * mlp.parameters(trunk.hidden, width), f"{layers:,} layers × {mlp.rule(name)}")
    _mlp_projections(draft, trunk, mlp, width, layers)


def mixed(draft: Draft, trunk: Trunk, mixture: Mixture, *, names: tuple[str, str]) -> None:
    """The mixture's layers; `names` are the fields with the number and the width of the experts.

    A mixture's networks are no adapter targets here: in current checkpoints the routed experts are stacked tensors, not
    linear layers, and adapters on the few others would be no "gate, up and down" of the model.
    """
    count_name, width_name = names
    layers, experts, hidden, mlp = mixture.layers, mixture.experts, trunk.hidden, mixture.mlp
    if mixture.per_token > experts:
        raise draft.text.refusal(
            "num_experts_per_tok", f"{mixture.per_token:,} of {experts:,} experts cannot be chosen", "Correct it"
        )
    one = mlp.parameters(hidden, mixture.width)
    router = experts * hidden + (experts if mixture.router_bias else 0) + (experts if mixture.correction else 0)
    draft.experts, draft.experts_per_token, draft.expert_width = experts, mixture.per_token, mixture.width
    draft.idle_parameters = layers * (experts - mixture.per_token) * one
    draft.note("experts", experts, count_name)
    draft.note("experts_per_token", mixture.per_token, "num_experts_per_tok")
    draft.note("expert_intermediate_size", mixture.width, width_name)
    draft.projections = [each for each in draft.projections if not _MLP_WORDS & set(each.serves)]
    biased = mixture.router_bias or mixture.correction
    draft.part("Routers", layers * router, f"{layers:,} layers × {count_name} × hidden_size" + " + biases" * biased)
    draft.part("Routed experts", layers * experts * one, f"{layers:,} layers × {count_name} × {mlp.rule(width_name)}")
    if mixture.shared_width:
        shared = mlp.parameters(hidden, mixture.shared_width) + (hidden if mixture.shared_gate else 0)
        draft.part("Shared experts", layers * shared, f"{layers:,} layers × {mlp.rule('shared width')}")


def _mlp_projections(draft: Draft, trunk: Trunk, mlp: Mlp, width: int, layers: int) -> None:
    if mlp.fused is not None:
        draft.projection(mlp.fused, ("gate", "up"), trunk.hidden, 2 * width, layers)
    else:
        if mlp.gated:
            draft.projection("gate_proj", ("gate",), trunk.hidden, width, layers)
        draft.projection(mlp.up, ("up",), trunk.hidden, width, layers)
    draft.projection(mlp.down, ("down",), width, trunk.hidden, layers)

"""What a training step keeps for its backward pass, with full gradient checkpointing and fused attention.

Not counted: logits kept for evaluation. Not assumed: a fused or chunked cross-entropy, which would need less.
"""

from dataclasses import dataclass
from typing import ClassVar

LAYER_FACTOR = 34
"""Bytes per token and hidden unit while one layer is recomputed, no attention matrix (Korthikanti et al. 2022)."""

LOSS_FACTOR = 12
"""Bytes per token and vocabulary entry at the loss: 16-bit logits, FP32 copy, log-softmax and gradient (traced)."""


@dataclass(frozen=True)
class Checkpoints:
    """The input of every layer, kept at 16 bits.

    >>> Checkpoints(sequence_length=4096, batch_size=1, hidden_size=4096, layers=32).bytes
    1073741824
    """

    code: ClassVar[str] = "checkpoints"
    sequence_length: int
    batch_size: int
    hidden_size: int
    layers: int

    @property
    def bytes(self) -> int:
        return 2 * self.sequence_length * self.batch_size * self.hidden_size * self.layers


@dataclass(frozen=True)
class WorkingSet:
    """The larger of one layer being recomputed and the loss; the two never peak together.

    >>> WorkingSet(sequence_length=4096, batch_size=1, hidden_size=4096, vocab_size=128_256).bytes
    6304038912
    """

    code: ClassVar[str] = "working_set"
    sequence_length: int
    batch_size: int
    hidden_size: int
    vocab_size: int

    @property
    def layer_bytes(self) -> int:
        return LAYER_FACTOR * self.sequence_length * self.batch_size * self.hidden_size

    @property
    def loss_bytes(self) -> int:
        return LOSS_FACTOR * self.sequence_length * self.batch_size * self.vocab_size

    @property
    def bytes(self) -> int:
        return max(self.layer_bytes, self.loss_bytes)

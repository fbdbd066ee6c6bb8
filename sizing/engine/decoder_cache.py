"""Keys and values of a speech model's decoder."""

from dataclasses import dataclass
from typing import ClassVar

from sizing.engine.kv_cache import ELEMENT_BYTES


@dataclass(frozen=True)
class DecoderCache:
    """The cache for one 30-second window of each stream, whatever the length of the recording.

    Shape: a key and a value of `hidden_size` numbers in each of `layers` layers, for `target_positions` tokens of text
    (self-attention) and for `source_positions` positions of the encoder (cross-attention); elements are 16-bit.

    >>> DecoderCache(layers=32, hidden_size=1280, source_positions=1500, target_positions=448, streams=1).bytes
    319160320
    """

    code: ClassVar[str] = "decoder_cache"
    layers: int
    hidden_size: int
    source_positions: int
    target_positions: int
    streams: int

    @property
    def bytes(self) -> int:
        positions = self.source_positions + self.target_positions
        return 2 * self.layers * self.hidden_size * ELEMENT_BYTES * positions * self.streams

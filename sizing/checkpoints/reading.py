"""What people give: a config.json, and the weights' index or headers beside it, or one GGUF file."""

from collections.abc import Iterable, Sequence

from sizing.checkpoints.config import read_config
from sizing.checkpoints.errors import UnreadableModel
from sizing.checkpoints.gguf import read_gguf
from sizing.checkpoints.gguf_header import MAGIC, MOST_HEADER_BYTES
from sizing.checkpoints.imported import ImportedModel, StoredWeights
from sizing.checkpoints.json_reading import CONFIG
from sizing.checkpoints.safetensors_header import read_safetensors_headers, read_safetensors_index

MOST_FILES = 400


def first_bytes(chunks: Iterable[bytes], most: int = MOST_HEADER_BYTES) -> bytes:
    """The start of an upload, as far as any header reaches; the rest is never read."""
    taken = bytearray()
    for chunk in chunks:
        taken += chunk[: most - len(taken)]
        if len(taken) >= most:
            break
    return bytes(taken)


def read_model(config: bytes | str | None, weights: Sequence[bytes | str] = ()) -> ImportedModel:
    """The model of what was given.

    Shape: `weights` is nothing, one safetensors index, the starts of the safetensors files, or the start of one GGUF
    file, which needs no configuration.
    Raises: UnreadableModel naming the field or the file.
    """
    if len(weights) > MOST_FILES:
        raise UnreadableModel("weights", f"more than {MOST_FILES} files were given", "Give the index instead")
    if any(isinstance(start, bytes) and start[:4] == MAGIC for start in weights):
        if len(weights) > 1 or config:
            raise UnreadableModel("weights", "a GGUF file describes its model alone", "Give it without other files")
        start = weights[0]
        assert isinstance(start, bytes)
        return read_gguf(start)
    if not config:
        raise UnreadableModel(CONFIG, "it is missing", "Give the config.json of the model, or one GGUF file")
    model = read_config(config)
    return model.with_stored(_stored(weights)) if weights else model


def _stored(weights: Sequence[bytes | str]) -> StoredWeights:
    headers = [start for start in weights if isinstance(start, bytes) and not _is_json(start)]
    if not headers and len(weights) == 1:
        return read_safetensors_index(weights[0])
    if len(headers) != len(weights):
        raise UnreadableModel("weights", "an index and headers were given together", "Give one of the two")
    return read_safetensors_headers(headers)


def _is_json(start: bytes) -> bool:
    """An index is text from its first brace on; the length before a header has a zero in it, which text has not."""
    return start[:64].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") and b"\x00" not in start[:8]

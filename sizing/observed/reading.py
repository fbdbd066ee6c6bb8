"""A file of observations: a list of objects, each checked in full, so that a wrong one is named by its id and field.

Figures with a fraction are read as Decimal: what was published is compared, not the nearest binary number.
"""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

SAMPLE = Path(__file__).parent / "sample.json"
TASKS = ("run", "fine_tune", "image", "speech")
READINGS = ("weights", "kv_cache", "kv_tokens", "peak")
VERDICTS = ("fits", "oom")
METERS = ("torch", "torch-reserved", "nvidia-smi", "nvidia-smi?", "vllm-breakdown", "capacity", "vendor")


class MalformedObservations(Exception):
    """The file is not in the format. The message names the entry by its id, and the field."""


@dataclass(frozen=True)
class Observation:
    """One published reading, or whether something fitted.

    Units: `value` is in GiB or tokens, None for fits and oom; it is for one GPU unless `whole_deployment`. `context`
    and `concurrency` of 0 mean that nothing of the cache is in the reading; for images they are pixels along an edge
    and images at once, for speech `concurrency` is streams. None is what the source does not say.
    """

    id: str
    source: str
    task: str
    model: str
    precision_bits: int
    gpus: int
    gpu_name: str | None
    quantity: str
    value: Decimal | None
    notes: str
    ambiguous: bool
    context: int | None = None
    concurrency: int | None = None
    sequence_length: int | None = None
    batch_size: int | None = None
    detail: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_verdict(self) -> bool:
        return self.quantity in VERDICTS

    @property
    def whole_deployment(self) -> bool:
        return bool(self.detail.get("whole_deployment"))

    @property
    def meter(self) -> str:
        return self.detail.get("meter") or ""

    @property
    def storage(self) -> str:
        """The format of the weights below 16 bits, as the source names it; empty where it does not."""
        return self.detail.get("fmt") or ""


def read(path: Path) -> tuple[Observation, ...]:
    """Every entry of the file.

    Raises: MalformedObservations.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal, parse_constant=_no_number)
    except (OSError, ValueError, RecursionError) as error:
        raise MalformedObservations(f"{path.name}: cannot be read: {error}") from error
    if not isinstance(rows, list):
        raise MalformedObservations(f"{path.name}: must be a list of observations.")
    found: dict[str, Observation] = {}
    for number, row in enumerate(rows, start=1):
        observation = _observation(row, number)
        if observation.id in found:
            raise MalformedObservations(f"{observation.id}, id: is used twice.")
        found[observation.id] = observation
    return tuple(found.values())


_TEXT, _FLAG, _OBJECT = "a text", "true or false", "an object"
_COUNT, _WHOLE, _NAME = "a whole number of 1 or more", "a whole number of 0 or more, or null", "a text or null"
_NUMBER, _NOTES = "a number above 0, or null", "a text, which may be empty"
_FIELDS = {
    "id": _TEXT,
    "source": _TEXT,
    "task": _TEXT,
    "model": _TEXT,
    "precision_bits": _COUNT,
    "gpus": _COUNT,
    "gpu_name": _NAME,
    "quantity": _TEXT,
    "observed_value": _NUMBER,
    "observed_unit": _NAME,
    "notes": _NOTES,
    "ambiguous": _FLAG,
    "detail": _OBJECT,
}
_SIZES = {
    "fine_tune": ("sequence_length", "batch_size"),
    "run": ("context", "concurrency"),
    "image": ("context", "concurrency"),
    "speech": ("context", "concurrency"),
}
_DETAIL = {
    "fmt": _NAME,
    "meter": _NAME,
    "impl": _NAME,
    "targets": _NAME,
    "pool_gib": _NUMBER,
    "mla_pad": _COUNT,
    "kv_bytes": _COUNT,
    "rank": _COUNT,
    "shard": _COUNT,
    "te": _COUNT,
    "hf": _FLAG,
    "gc": _FLAG,
    "chunked": _FLAG,
    "whole_deployment": _FLAG,
}


def _observation(row: object, number: int) -> Observation:
    if not isinstance(row, dict):
        raise MalformedObservations(f"Entry {number}: must be an object.")
    name = row["id"] if isinstance(row.get("id"), str) and row["id"] else f"Entry {number}"
    if row.get("task") not in TASKS:
        raise MalformedObservations(f"{name}, task: must be {', '.join(TASKS)}.")
    sizes = dict.fromkeys(_SIZES[row["task"]], _WHOLE)
    _check(name, "", row, {**_FIELDS, **sizes}, complete=True)
    _check(name, "detail.", row["detail"], _DETAIL, complete=False)
    if row["quantity"] not in (*READINGS, *VERDICTS):
        raise MalformedObservations(f"{name}, quantity: must be {', '.join((*READINGS, *VERDICTS))}.")
    if row["quantity"] in VERDICTS:
        expected: tuple[Any, ...] = (None,)
        has_value = row["observed_value"] is None
    else:
        expected = ("tokens",) if row["quantity"] == "kv_tokens" else ("GiB",)
        has_value = row["observed_value"] is not None
    if not has_value:
        raise MalformedObservations(f"{name}, observed_value: a reading has one, fits and oom have none.")
    if row["observed_unit"] not in expected:
        raise MalformedObservations(f"{name}, observed_unit: must be {expected[0] or 'null'} for {row['quantity']}.")
    if row["detail"].get("meter") not in (None, *METERS):
        raise MalformedObservations(f"{name}, detail.meter: must be {', '.join(METERS)}.")
    if row["quantity"] == "kv_tokens" and row["detail"].get("pool_gib") is None:
        raise MalformedObservations(f"{name}, detail.pool_gib: is needed beside a number of tokens.")
    value = row["observed_value"]
    return Observation(
        **{field: row[field] for field in _FIELDS if field not in ("observed_value", "observed_unit")},
        **{field: row[field] for field in sizes},
        value=None if value is None else Decimal(value),
    )


def _check(name: str, prefix: str, row: dict[str, Any], kinds: dict[str, str], *, complete: bool) -> None:
    for field_name in row:
        if field_name not in kinds:
            raise MalformedObservations(f"{name}, {prefix}{field_name}: is not known.")
    for field_name, kind in kinds.items():
        if field_name not in row:
            if complete:
                raise MalformedObservations(f"{name}, {prefix}{field_name}: is missing.")
        elif not _is(row[field_name], kind):
            raise MalformedObservations(f"{name}, {prefix}{field_name}: must be {kind}.")


def _is(value: object, kind: str) -> bool:
    if value is None:
        return kind in (_WHOLE, _NAME, _NUMBER)
    if kind in (_TEXT, _NAME, _NOTES):
        return isinstance(value, str) and (kind != _TEXT or bool(value.strip()))
    if kind == _FLAG:
        return isinstance(value, bool)
    if kind == _OBJECT:
        return isinstance(value, dict)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return False
    # No published reading is near this; above it a figure is a fault.
    if not 0 <= value <= 10**12:
        return False
    if kind == _NUMBER:
        return value > 0
    return isinstance(value, int) and value >= (1 if kind == _COUNT else 0)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")

"""The summary in words for a terminal, and as a document for programs."""

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from catalog.units import to_gib
from sizing.observed.compare import Reading, Verdict
from sizing.observed.missing import LARGE_PERCENT, is_large, missing_terms
from sizing.observed.summary import Errors, Summary, Verdicts

COMPARED_WITH = (
    "weights     our weights line",
    "kv_cache    our KV line, elements of 16 bits",
    "kv_tokens   the tokens that the stated pool holds by our KV line",
    "peak        read from torch's allocator: our total without the runtime, which the allocator does not see;",
    "            by nvidia-smi, a server's breakdown or a card's capacity: our total;",
    "            of a server without cache (context 0): weights, their margin and the runtime",
    "fits, oom   our need per GPU against the memory that the catalog counts for the GPU",
)


# --- For a terminal -------------------------------------------------------------------------------------------------


def text(summary: Summary, name: str) -> str:
    parts = [
        f"{name}: {len(summary.outcomes)} observations; {len(summary.readings)} readings and {len(summary.verdicts)} "
        f"verdicts compared, {len(summary.ambiguous)} ambiguous ones apart, {len(summary.not_compared)} not compared.",
        _section("What is compared with what", COMPARED_WITH),
        _section("Error of our figure, by task and precision (+ is above what was observed)", _errors(summary)),
        _section("Fits or not, by task and precision", _verdicts(summary)),
        _section("False “fits”: we say that it fits, and it did not", _verdict_lines(summary, false_fits=True)),
        _section("Too careful: we say that it does not fit, and it did", _verdict_lines(summary, false_fits=False)),
        _section(
            f"Off by more than {LARGE_PERCENT} %, with the missing term as far as the entry states it",
            [line for reading in summary.large for line in _explained(reading)],
        ),
        _section("KV readings", _cache(summary)),
        _section("16-bit weights", [_weights(summary)]),
        _section(
            "Ambiguous entries, not counted above", [line for each in summary.ambiguous for line in _explained(each)]
        ),
        _section("Names that match none of our models", _listed(summary.unknown_names)),
        _section("Not compared for another reason", _listed(summary.unanswered)),
    ]
    return "\n\n".join(parts)


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([title, "-" * len(title), *(list(lines) or ["none"])])


def _errors(summary: Summary) -> list[str]:
    rows = [("task", "bits", "what", "count", "too low", "median", "p90", "worst", "")]
    for task, bits, what, errors in summary.errors():
        worst = errors.worst
        numbers = (str(errors.count), str(errors.too_low), percent(errors.median), percent(errors.p90))
        rows.append((task, str(bits), what, *numbers, signed(worst.error), worst.observation.id))
    return table(rows, left=(0, 2, 8))


def _verdicts(summary: Summary) -> list[str]:
    rows: list[tuple[str, ...]] = [("task", "bits", "count", "right", "false fits", "too careful")]
    for task, bits, found in summary.verdict_counts():
        rows.append((task, str(bits), *map(str, _counts(found))))
    rows.append(("all", "", *map(str, _counts(Verdicts(summary.verdicts)))))
    return table(rows, left=(0,))


def _counts(found: Verdicts) -> tuple[int, int, int, int]:
    return len(found.verdicts), found.right, len(found.false_fits), len(found.false_refusals)


def _verdict_lines(summary: Summary, *, false_fits: bool) -> list[str]:
    found = Verdicts(summary.verdicts)
    wrong = found.false_fits if false_fits else found.false_refusals
    return [line for verdict in wrong for line in _explained(verdict)]


def _cache(summary: Summary) -> list[str]:
    rows = [("entry", "model", "ours", "observed", "error", "same elements", "")]
    for reading in summary.cache_readings:
        observation = reading.observation
        same = reading.error_of_same_elements
        terms = missing_terms(reading)
        remark = "; ".join(terms) if reading.same_elements is not None or "mla_pad" in observation.detail else ""
        rows.append(
            (
                observation.id + (" (ambiguous)" if observation.ambiguous else ""),
                observation.model,
                figure(reading, reading.ours),
                figure(reading, reading.observed),
                signed(reading.error),
                "" if same is None else signed(same),
                remark,
            )
        )
    return table(rows, left=(0, 1, 6)) if len(rows) > 1 else []


def _weights(summary: Summary) -> str:
    errors = summary.weights_at_16_bits
    if not errors.count:
        return "none"
    return f"median |error| {percent(errors.median)} of {errors.count} readings, worst {signed(errors.worst.error)}"


def _explained(outcome: Reading | Verdict) -> list[str]:
    observation = outcome.observation
    asked = f"{observation.task}, {observation.model}, {observation.precision_bits} bits, {_sizes(outcome)}"
    found = [f"{observation.id}  {asked}", f"    {_figures(outcome)}", f"    source: {observation.source}"]
    if observation.notes:
        found.append(f"    noted: {observation.notes}")
    if not (outcome.right if isinstance(outcome, Verdict) else not is_large(outcome)):
        found.append(f"    missing: {'; '.join(missing_terms(outcome))}")
    return found


def _figures(outcome: Reading | Verdict) -> str:
    if isinstance(outcome, Verdict):
        memory = outcome.memory
        ours = "fits" if outcome.fits_by_us else "does not fit"
        return (
            f"{'it fitted' if outcome.fitted else 'it did not fit'}; by us it {ours}: need {to_gib(outcome.need)} GiB, "
            f"{outcome.observation.gpu_name} {to_gib(memory.bytes)} GiB ({memory.origin})"
        )
    observation = outcome.observation
    what = f"{observation.quantity}{f' ({observation.meter})' if observation.meter else ''}"
    without = outcome.error_without_margin
    bare = "" if without is None else f", {signed(without)} without the margin"
    return (
        f"{what}: observed {figure(outcome, outcome.observed)}, ours {figure(outcome, outcome.ours)} "
        f"({outcome.against}): {signed(outcome.error)}{bare}"
    )


def _sizes(outcome: Reading | Verdict) -> str:
    observation = outcome.observation
    if observation.task == "fine_tune":
        sizes = f"{_known(observation.sequence_length)} tokens × {_known(observation.batch_size)}"
    elif observation.task == "run":
        sizes = f"{_known(observation.context)} tokens × {_known(observation.concurrency)}"
    elif observation.task == "image":
        sizes = f"{_known(observation.context)} pixels × {_known(observation.concurrency)}"
    else:
        sizes = f"{_known(observation.concurrency)} at once"
    return f"{sizes}, {observation.gpus} GPU{'s' if observation.gpus > 1 else ''}"


def _known(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _listed(found: dict[str, list[str]]) -> list[str]:
    return [f"{name}: {len(ids)} ({', '.join(ids)})" for name, ids in found.items()]


def table(rows: Sequence[Sequence[str]], left: tuple[int, ...]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            f"{cell:<{width}}" if column in left else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def figure(reading: Reading, value: int | Decimal) -> str:
    if reading.observation.quantity == "kv_tokens":
        return f"{int(value):,} tokens"
    return f"{to_gib(int(value))} GiB"


def percent(share: Fraction) -> str:
    exact = Decimal(share.numerator) * 100 / Decimal(share.denominator)
    return f"{exact.quantize(Decimal('0.01'), rounding=ROUND_HALF_UP)} %"


def signed(share: Fraction) -> str:
    return f"{'+' if share >= 0 else '−'}{percent(abs(share))}"


# --- For programs ---------------------------------------------------------------------------------------------------


def document(summary: Summary) -> dict[str, Any]:
    """The same figures. Errors are texts in percent, signed where they have a direction."""
    found = Verdicts(summary.verdicts)
    return {
        "observations": len(summary.outcomes),
        "compared_with": list(COMPARED_WITH),
        "errors": [_errors_document(*row) for row in summary.errors()],
        "verdicts": [
            {
                "task": task,
                "precision_bits": bits,
                "count": len(rows.verdicts),
                "right": rows.right,
                "false_fits": [verdict.observation.id for verdict in rows.false_fits],
                "too_careful": [verdict.observation.id for verdict in rows.false_refusals],
            }
            for task, bits, rows in summary.verdict_counts()
        ],
        "weights_at_16_bits_median_percent": (
            _plain(summary.weights_at_16_bits.median) if summary.weights_at_16_bits.count else None
        ),
        "false_fits": [_outcome(verdict) for verdict in found.false_fits],
        "too_careful": [_outcome(verdict) for verdict in found.false_refusals],
        "large_errors": [_outcome(reading) for reading in summary.large],
        "kv_readings": [_outcome(reading) for reading in summary.cache_readings],
        "ambiguous": [_outcome(each) for each in summary.ambiguous],
        "compared": [*map(_outcome, summary.readings), *map(_outcome, summary.verdicts)],
        "unknown_names": summary.unknown_names,
        "unanswered": summary.unanswered,
    }


def _errors_document(task: str, bits: int, what: str, errors: Errors) -> dict[str, Any]:
    return {
        "task": task,
        "precision_bits": bits,
        "quantity": what,
        "count": errors.count,
        "too_low": errors.too_low,
        "median_percent": _plain(errors.median),
        "p90_percent": _plain(errors.p90),
        "worst_percent": _plain(errors.worst.error),
        "worst": errors.worst.observation.id,
    }


def _outcome(outcome: Reading | Verdict) -> dict[str, Any]:
    observation = outcome.observation
    common = {"id": observation.id, "source": observation.source, "quantity": observation.quantity}
    if isinstance(outcome, Verdict):
        return {
            **common,
            "need_bytes": outcome.need,
            "memory_bytes": outcome.memory.bytes,
            "memory_origin": outcome.memory.origin,
            "right": outcome.right,
            "missing": [] if outcome.right else missing_terms(outcome),
        }
    unit = "tokens" if observation.quantity == "kv_tokens" else "bytes"
    same = outcome.error_of_same_elements
    return {
        **common,
        "against": outcome.against,
        f"ours_{unit}": outcome.ours,
        f"observed_{unit}": int(outcome.observed),
        "error_percent": _plain(outcome.error),
        "error_of_same_elements_percent": None if same is None else _plain(same),
        "missing": missing_terms(outcome) if is_large(outcome) else [],
    }


def _plain(share: Fraction) -> str:
    exact = Decimal(share.numerator) * 100 / Decimal(share.denominator)
    return str(exact.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))

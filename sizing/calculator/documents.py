"""The calculator's answers as JSON has them. The pages are drawn from the same documents, so both say the same."""

from typing import Any

from catalog.units import to_gib
from sizing import explain
from sizing.calculator import words
from sizing.calculator.candidates import TERM_DAYS, Candidate, Candidates
from sizing.calculator.forms import EnvelopeQuestion
from sizing.documents import machine_document
from sizing.engine.envelope import Envelope, ReserveEntry
from sizing.engine.stages import Chain, Stage, Step
from sizing.explain.words import counted, usd

Document = dict[str, Any]


def envelope_document(question: EnvelopeQuestion, found: Candidates) -> Document:
    """Weights only, the envelope, every format, what is left out, and candidates to examine."""
    envelope = question.envelope
    return {
        "parameters": envelope.parameters,
        "bits": envelope.bits,
        "purpose": question.purpose,
        "purpose_label": words.PURPOSES[question.purpose],
        "weights_only": {
            "label": words.WEIGHTS_ONLY,
            "formula": words.weights_formula(envelope),
            **_size(envelope.weights_bytes),
        },
        "reserve": [_entry(entry) for entry in envelope.entries],
        "envelope": {
            "label": words.INDICATIVE_ENVELOPE,
            "formula": words.envelope_formula(envelope),
            **_size(envelope.total_bytes),
            "complete": envelope.is_complete,
            "unknown": [entry.name for entry in envelope.unknown],
            "text": words.incomplete(envelope),
            "rounding_note": _rounding_note(envelope),
        },
        "formats": [_format(one) for one in envelope.in_every_format()],
        "to_document": [
            {"code": code, "name": name, "text": text} for code, name, text in words.to_document(question.purpose)
        ],
        "left_out": [sentence._asdict() for sentence in words.LEFT_OUT],
        "notes": [sentence._asdict() for sentence in words.NOTES],
        "candidates_count": found.count,
        "candidates_text": words.candidates_text(found.count, len(found.listed), TERM_DAYS),
        "candidates_note": words.CANDIDATE_NOTE,
        "reading_decides": explain.reading_decides(envelope.total_bytes, list(found.nominal_sizes_gb)) or None,
        "candidates": [_candidate(one) for one in found.listed],
    }


def _size(size_bytes: int) -> Document:
    return {"bytes": size_bytes, "gib": f"{to_gib(size_bytes)}"}


def _entry(entry: ReserveEntry) -> Document:
    size = {"bytes": None, "gib": None} if entry.bytes is None else _size(entry.bytes)
    return {
        "name": entry.name,
        "reason": entry.reason,
        "state": entry.state,
        "state_label": words.STATES[entry.state],
        "formula": words.entry_formula(entry),
        **size,
    }


def _format(envelope: Envelope) -> Document:
    return {
        "bits": envelope.bits,
        "label": words.FORMATS[envelope.bits],
        "theoretical": envelope.bits == 4,
        "formula": words.weights_formula(envelope),
        "weights_only_bytes": envelope.weights_bytes,
        "weights_only_gib": f"{to_gib(envelope.weights_bytes)}",
        "envelope_bytes": envelope.total_bytes,
        "envelope_gib": f"{to_gib(envelope.total_bytes)}",
    }


def _rounding_note(envelope: Envelope) -> str | None:
    printed = to_gib(envelope.weights_bytes) + sum(to_gib(entry.bytes or 0) for entry in envelope.known)
    return None if printed == to_gib(envelope.total_bytes) else explain.ROUNDING_NOTE


def _candidate(candidate: Candidate) -> Document:
    nominal = candidate.machine.gpu.memory_gb_nominal
    return {
        "gpu": candidate.machine.gpu.slug,
        "gpu_name": candidate.machine.gpu.name,
        "state": "to_confirm",
        "state_label": words.TO_CONFIRM,
        "nominal_gb": nominal,
        "nominal_text": "Nominal size not published" if nominal is None else f"{nominal:,} GB nominal",
        "counted_bytes": candidate.machine.gpu_memory_bytes,
        "counted_gib": f"{to_gib(candidate.machine.gpu_memory_bytes or 0)}",
        "counted_text": explain.memory_text(candidate.machine),
        "headroom_bytes": candidate.headroom_bytes,
        "headroom_gib": f"{to_gib(candidate.headroom_bytes)}",
        "machines": candidate.machines,
        "machines_text": counted(candidate.machines, "machine"),
        "package_usd": f"{candidate.package_usd:.2f}",
        "package_text": f"{usd(candidate.package_usd)} per lot for {TERM_DAYS} days",
        "term_days": TERM_DAYS,
        "machine": machine_document(candidate.machine),
    }


# --- Stages -------------------------------------------------------------------------------------------------------


def stages_document(chain: Chain) -> Document:
    """Both ways of loading a chain, side by side."""
    largest = chain.steps.index(chain.largest_step)
    return {
        "stages": [_stage(stage) for stage in chain.stages],
        "resident": {
            "label": words.RESIDENT,
            "formula": words.resident_formula(chain),
            "largest_working_memory": chain.most_working.name,
            **_size(chain.resident_bytes),
        },
        "step_by_step": {
            "label": words.STEP_BY_STEP,
            "formula": words.step_formula(chain.largest_step),
            "largest_step": chain.largest_step.stage.name,
            **_size(chain.stepwise_bytes),
            "steps": [_step(step, decides=number == largest) for number, step in enumerate(chain.steps)],
        },
        "saved_bytes": chain.resident_bytes - chain.stepwise_bytes,
        "text": words.difference(chain),
        "assumptions": [sentence._asdict() for sentence in words.STAGE_ASSUMPTIONS],
        "remarks": [sentence._asdict() for sentence in words.STAGE_REMARKS],
    }


def _stage(stage: Stage) -> Document:
    return {
        "name": stage.name,
        "load": stage.load,
        "load_label": words.LOADS[stage.load],
        "weights_bytes": stage.weights_bytes,
        "weights_gib": f"{to_gib(stage.weights_bytes)}",
        "weights_formula": words.stage_formula(stage.weights_bytes),
        "working_memory_bytes": stage.working_bytes,
        "working_memory_gib": f"{to_gib(stage.working_bytes)}",
        "working_memory_formula": words.stage_formula(stage.working_bytes),
    }


def _step(step: Step, *, decides: bool) -> Document:
    return {
        "stage": step.stage.name,
        "formula": words.step_formula(step),
        "kept_bytes": step.kept_bytes,
        "own_weights_bytes": step.own_weights_bytes,
        "working_memory_bytes": step.stage.working_bytes,
        **_size(step.total_bytes),
        "decides": decides,
    }

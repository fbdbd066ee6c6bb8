"""The workload an order is for, and how it fits the machine: read from the page's address, kept with the order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.datastructures import MultiValueDict

from catalog.models import Machine
from sizing import explain
from sizing.answers import Candidate
from sizing.documents import memory_document
from sizing.engine import ENGINE_VERSION, confidence
from sizing.engine.fit import Device, Fit, Rejection, fit
from sizing.engine.workloads import Workload as SizedWorkload
from sizing.explain.words import gib
from sizing.forms import WORKLOAD_NAMES, OwnModels, workload_from
from sizing.permalinks import workload_document
from sizing.task_fields import SizedModel


@dataclass(frozen=True)
class Workload:
    """A workload of a catalog model or of one that the organization brought, with the fields the API knows it by."""

    ai_model: SizedModel | None
    run: SizedWorkload
    fields: dict[str, Any]


def workload_in(data: MultiValueDict, *, own_models: OwnModels | None = None) -> Workload | None:
    """The workload in a page's parameters, None when there is none. `own_models` are the organization's.

    Raises: sizing.forms.InvalidInput.
    """
    given: Mapping[str, Any] = {name: data.getlist(name) for name in WORKLOAD_NAMES if any(data.getlist(name))}
    return workload_of(given, own_models=own_models) if given else None


def workload_of(given: Mapping[str, Any], *, own_models: OwnModels | None = None) -> Workload:
    """The workload in values by the names of the API.

    Raises: sizing.forms.InvalidInput.
    """
    ai_model, run = workload_from(given, own_models=own_models)
    return Workload(ai_model, run, workload_document(ai_model, run))


def sizing_document(workload: Workload, machine: Machine) -> dict[str, Any]:
    """How the workload fits this machine: the memory line by line, why it fits or does not, and how sure that is."""
    found = _fit(workload.run, machine)
    gpus = found.estimate.gpus if found else 1
    memory = memory_document(workload.ai_model, workload.run, gpus)
    each = f" on each of {gpus} GPUs" if gpus > 1 else ""
    need = gib(found.estimate.per_gpu_bytes) if found else f"{memory['total_gib']} GiB"
    run, ai_model = workload.run, workload.ai_model
    document: dict[str, Any] = {
        "headline": f"{explain.workload_words(run)} needs {need}{each}",
        "workload": workload.fields,
        "model": None
        if ai_model is None
        else {"slug": ai_model.slug, "name": ai_model.name, "url": ai_model.source_url},
        "memory": memory,
        "fits": isinstance(found, Fit),
        "engine_version": ENGINE_VERSION,
    }
    if isinstance(found, Fit):
        return document | _why(machine, found)
    return document | {"why_not": _why_not(found, machine)}


def _fit(run: SizedWorkload, machine: Machine) -> Fit | Rejection | None:
    if machine.gpu_memory_bytes is None:
        return None
    return fit(run, Device(machine.gpu_count, machine.gpu_memory_bytes))


def _why(machine: Machine, found: Fit) -> dict[str, Any]:
    candidate = Candidate(
        machine=machine,
        estimate=found.estimate,
        headroom_bytes=found.headroom_bytes,
        package_usd=machine.price_7_days_usd,
        order_total_usd=machine.price_7_days_usd,
        confidence=confidence.judge(
            found.estimate,
            memory_bytes=found.device.memory_bytes,
            memory_source=machine.memory_source,
            cuda=machine.gpu.cuda,
        ),
    )
    reasons = [reason._asdict() for reason in explain.confidence_reasons(candidate)]
    raises = [raising._asdict() for raising in explain.confidence_raises(candidate)]
    return {
        "gpus_used": candidate.gpus_used,
        "need_bytes_per_gpu": candidate.need_bytes_per_gpu,
        "headroom_bytes": candidate.headroom_bytes,
        "why_it_fits": explain.why_it_fits(candidate),
        # How many lots were free is no fact about the order that takes one.
        "limits": [limit._asdict() for limit in explain.limits(candidate) if limit.code != "reservation_limit"],
        "confidence": {"level": candidate.confidence.level, "reasons": reasons, "raise": raises},
    }


def _why_not(found: Rejection | None, machine: Machine) -> str:
    if found is None:
        return "The memory of this machine is unknown, so nobody can say whether the workload fits."
    gpus = found.estimate.gpus
    each = f" on each of {gpus} GPUs" if gpus > 1 else ""
    have = gib(found.device.memory_bytes)
    return f"{gib(found.estimate.per_gpu_bytes)} needed{each}, {have} there: {gib(found.lacking_bytes)} too little."

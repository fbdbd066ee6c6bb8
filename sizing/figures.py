"""Lists of figures as staff and seed files write them, to the engine's values: cache groups, projections, networks.

What is wrong with a list is told in sentences, one each, that name the entry and the figure.
"""

from collections.abc import Callable, Collection
from typing import Any

from sizing.engine.errors import UnsizableModel
from sizing.engine.shapes import CacheGroup, Network, Projection
from sizing.engine.workloads import TARGET_WORDS

GROUP_FIELDS = {"layers", "elements_per_token", "kv_heads", "window"}
REQUIRED_GROUP_FIELDS = ("layers", "elements_per_token")
PROJECTION_FIELDS = ("module", "serves", "in_features", "out_features", "layers")
NETWORK_FIELDS = ("role", "name", "parameters")
NETWORK_ROLES = ("denoiser", "text_encoder", "vae", "safety_checker")
MAX_NAME = 120


def cache_groups(written: object) -> tuple[CacheGroup, ...]:
    """The groups; none when the layout is unknown.

    Raises: UnsizableModel.
    """
    return _values(written, cache_group_problems, "cache_groups", lambda entry: CacheGroup(**entry))


def projections(written: object) -> tuple[Projection, ...]:
    """The modules that an adapter can be put on.

    Raises: UnsizableModel.
    """
    return _values(written, projection_problems, "projections", _projection)


def networks(written: object) -> tuple[Network, ...]:
    """The networks of an image pipeline.

    Raises: UnsizableModel.
    """
    return _values(written, network_problems, "networks", lambda entry: Network(**entry))


def _values(
    written: object, problems_of: Callable[[object], list[str]], field: str, value: Callable[[dict[str, Any]], Any]
) -> tuple[Any, ...]:
    if problems := problems_of(written):
        raise UnsizableModel(problems[0], field=field)
    assert isinstance(written, list), "a list without problems is a list"
    return tuple(map(value, written))


def _projection(entry: dict[str, Any]) -> Projection:
    return Projection(**{**entry, "serves": tuple(entry["serves"])})


# --- What is wrong ------------------------------------------------------------------------------------------------


def cache_group_problems(groups: object) -> list[str]:
    """What is wrong with a list of cache groups as it was written, one sentence each."""
    if not isinstance(groups, list):
        return ["Give a list of groups, or an empty list when the layout is unknown."]
    problems = []
    for number, group in enumerate(groups, start=1):
        if not isinstance(group, dict):
            problems.append(f"Group {number} must be an object with layers, elements_per_token, kv_heads and window.")
            continue
        found = _name_problems(f"Group {number}", group, GROUP_FIELDS, REQUIRED_GROUP_FIELDS)
        problems += found or _refusal(f"Group {number}", lambda entry: CacheGroup(**entry), group)
    return problems


def projection_problems(entries: object, layers: int | None = None) -> list[str]:
    """What is wrong with a list of projections of a model of `layers` as it was written, one sentence each."""
    if not isinstance(entries, list):
        return ["Give a list of projections, or an empty list when they are unknown."]
    problems = []
    for number, entry in enumerate(entries, start=1):
        which = f"Projection {number}"
        if not isinstance(entry, dict):
            problems.append(f"{which} must be an object with {_and(PROJECTION_FIELDS)}.")
            continue
        found = _name_problems(which, entry, PROJECTION_FIELDS, PROJECTION_FIELDS)
        found = found or _text_problems(which, entry, "module") or _serves_problems(which, entry["serves"])
        found = found or _refusal(which, _projection, entry)
        if not found and layers and entry["layers"] > layers:
            found = [f"{which} is in {entry['layers']} layers, the model has {layers}."]
        problems += found
    return problems


def network_problems(entries: object) -> list[str]:
    """What is wrong with a list of networks as it was written, one sentence each."""
    if not isinstance(entries, list):
        return ["Give a list of networks, or an empty list when they are unknown."]
    problems = []
    for number, entry in enumerate(entries, start=1):
        which = f"Network {number}"
        if not isinstance(entry, dict):
            problems.append(f"{which} must be an object with {_and(NETWORK_FIELDS)}.")
            continue
        found = _name_problems(which, entry, NETWORK_FIELDS, NETWORK_FIELDS) or _text_problems(which, entry, "name")
        if not found and entry["role"] not in NETWORK_ROLES:
            found = [f"{which}: role must be one of {', '.join(NETWORK_ROLES)}."]
        problems += found or _refusal(which, lambda values: Network(**values), entry)
    return problems


def _name_problems(which: str, entry: dict[str, Any], known: Collection[str], required: Collection[str]) -> list[str]:
    unknown = sorted(map(str, set(entry) - set(known)))
    missing = [name for name in required if name not in entry]
    if unknown:
        return [f"{which}: {', '.join(unknown)} is not known; use {', '.join(sorted(known))}."]
    return [f"{which}: {' and '.join(missing)} must be given."] if missing else []


def _text_problems(which: str, entry: dict[str, Any], field: str) -> list[str]:
    text = entry[field]
    fine = isinstance(text, str) and 0 < len(text) <= MAX_NAME and text.isprintable()
    return [] if fine else [f"{which}: {field} must be a text of 1 to {MAX_NAME} characters on one line."]


def _serves_problems(which: str, words: object) -> list[str]:
    known = isinstance(words, list) and words and all(isinstance(word, str) and word in TARGET_WORDS for word in words)
    if isinstance(words, list) and known and len(set(words)) == len(words):
        return []
    return [f"{which}: serves must be a list of one or more of {', '.join(TARGET_WORDS)}, each once."]


def _refusal(which: str, value: Callable[[dict[str, Any]], object], entry: dict[str, Any]) -> list[str]:
    try:
        value(entry)
    except UnsizableModel as error:
        return [f"{which}: {error}."]
    return []


def _and(names: Collection[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}"

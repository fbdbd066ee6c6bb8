"""Seed files to rows: everything is checked first, then upserted by its natural key in one transaction.

Running it again changes only what the files say differently. It never touches `free_lots` of a machine that is there
(orders own it) nor removes anything; with `only_new` it leaves every row that is there as staff made it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from simple_history.utils import bulk_create_with_history

from catalog import pricing, units
from catalog.checks import machine_problems
from catalog.models import Gpu, GpuAlias, Machine, MemoryUnit, Option, Provider
from catalog.stock import LotsUnderRent, change_lots

SEEDS = Path(__file__).parent / "seeds"
FILES = ("gpus.json", "providers.json", "machines.json", "options.json")

Row = dict[str, Any]


class SeedError(Exception):
    """The seed files break a rule; nothing was written.

    Attributes: `problems`, one sentence each, naming file, row and field.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass
class Report:
    """What a load did: per file, how many rows were created, updated and left unchanged."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        return [
            f"{name}: {count['created']} created, {count['updated']} updated, {count['unchanged']} unchanged"
            for name, count in self.counts.items()
        ]


def load(directory: Path = SEEDS, *, only_new: bool = False) -> Report:
    """Load every seed file of the directory.

    Raises: SeedError, with every problem found, before anything is written.
    """
    problems: list[str] = []
    files = {name: _read(directory / name, problems) for name in FILES}
    named = (("slug",), ("name",))
    checked = {
        "gpus.json": _check(files["gpus.json"], "gpus.json", _gpu_row, named, problems),
        "providers.json": _check(files["providers.json"], "providers.json", _provider_row, named, problems),
        "options.json": _check(files["options.json"], "options.json", _option_row, named, problems),
        "machines.json": _check(
            files["machines.json"], "machines.json", _machine_row, (("provider", "name"),), problems
        ),
    }
    _check_references(checked, problems)
    if problems:
        raise SeedError(problems)
    try:
        with transaction.atomic():
            return _write(checked, only_new=only_new)
    except IntegrityError as error:
        # Staff may have given another row the name that a file wants to use.
        raise SeedError([f"A row that is already in the catalog stands in the way: {error}"]) from error


# --- Reading ------------------------------------------------------------------------------------------------------


def _read(path: Path, problems: list[str]) -> list[Row]:
    try:
        # A number with a point would be a float, whose digits are not what was written.
        rows = json.loads(path.read_text(encoding="utf-8"), parse_float=_Point)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        problems.append(f"{path.name}: cannot be read: {error}")
        return []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        problems.append(f"{path.name}: must be a list of objects, one a row.")
        return []
    return rows


class _Point:
    """A JSON number with a point or an exponent, which no field takes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


# --- Checking -----------------------------------------------------------------------------------------------------


class _RowError(Exception):
    def __init__(self, field_name: str, message: str) -> None:
        super().__init__(message)
        self.field_name = field_name


# A file's sound rows by their number in it, so that every message can name the row.
Rows = dict[int, Row]
Parsed = tuple[Row, list[tuple[str, str]]]


def _check(
    rows: list[Row], file: str, parse: Callable[[Row], Parsed], unique: Iterable[tuple[str, ...]], problems: list[str]
) -> Rows:
    checked: Rows = {}
    seen: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(rows, start=1):
        try:
            values, found = parse(dict(row))
        except _RowError as error:
            problems.append(f"{file}, row {number}, {error.field_name}: {error}")
            continue
        problems.extend(f"{file}, row {number}, {name}: {message}" for name, message in found)
        for names in unique:
            identity = (names, *(values[name] for name in names))
            if identity in seen:
                problems.append(f"{file}, row {number}, {' and '.join(names)}: the same as in row {seen[identity]}.")
            seen.setdefault(identity, number)
        checked[number] = values
    return checked


def _check_references(checked: Mapping[str, Rows], problems: list[str]) -> None:
    gpus = {row["slug"] for row in checked["gpus.json"].values()}
    providers = {row["slug"] for row in checked["providers.json"].values()}
    for number, row in checked["machines.json"].items():
        if row["gpu"] not in gpus:
            problems.append(f"machines.json, row {number}, gpu: “{row['gpu']}” is not in gpus.json.")
        if row["provider"] not in providers:
            problems.append(f"machines.json, row {number}, provider: “{row['provider']}” is not in providers.json.")


def _take(row: Row, name: str, kinds: type | tuple[type, ...], default: Any = ...) -> Any:
    """One value out of the row, of one of the kinds; without a default it must be there."""
    if name not in row:
        if default is ...:
            raise _RowError(name, "is missing.")
        return default
    value = row.pop(name)
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is int):
        raise _RowError(name, f"{value!r} is not of the right kind.")
    return value


def _amount(row: Row, name: str, default: Any = ...) -> Decimal | None:
    text = _take(row, name, (str, _Point, int, type(None)), default)
    if text is None or isinstance(text, Decimal):
        return text
    try:
        if not isinstance(text, str):
            raise InvalidOperation
        amount = Decimal(text)
    except InvalidOperation:
        raise _RowError(name, f'{text!r} must be a decimal number in quotes, such as "0.35".') from None
    if not amount.is_finite() or amount.adjusted() > 15:
        raise _RowError(name, f"{text!r} is no believable number.")
    return amount


def _nothing_left(row: Row) -> None:
    for name in row:
        raise _RowError(name, "is not a field of this file.")


def _field_problems(model: type[models.Model], values: Row) -> list[tuple[str, str]]:
    """What the model's own fields refuse: lengths, slugs, addresses, ranges."""
    instance = model(**values)
    try:
        instance.clean_fields()
    except ValidationError as error:
        return [(name, " ".join(messages)) for name, messages in error.message_dict.items()]
    return []


def _gpu_row(row: Row) -> tuple[Row, list[tuple[str, str]]]:
    texts = {name: _take(row, name, str, "") for name in ("architecture", "form_factor", "memory_type", "notes")}
    values: Row = {
        "slug": _take(row, "slug", str),
        "name": _take(row, "name", str),
        "vendor": _take(row, "vendor", str),
        "compute_capability": _take(row, "compute_capability", str, ""),
        "devices_per_card": _take(row, "devices_per_card", int, 1),
        "memory_gb_nominal": _take(row, "memory_gb_nominal", (int, type(None)), None),
        "memory_mib_reported": _take(row, "memory_mib_reported", (int, type(None)), None),
        "memory_bandwidth_gb_s": _amount(row, "memory_bandwidth_gb_s", None),
        "bf16": _take(row, "bf16", (bool, type(None)), None),
        "fp8": _take(row, "fp8", (bool, type(None)), None),
        "sources": _take(row, "sources", list, []),
        **texts,
    }
    aliases = _take(row, "aliases", list, [])
    _nothing_left(row)
    problems = _field_problems(Gpu, values)
    for name in ("memory_gb_nominal", "memory_mib_reported"):
        if values[name] is not None and values[name] < 1:
            problems.append((name, "must be 1 or more, or null when unknown."))
    if not all(isinstance(source, str) and source.startswith("https://") for source in values["sources"]):
        problems.append(("sources", "must be a list of https addresses."))
    if not all(isinstance(alias, str) and alias.strip() for alias in aliases) or len(set(aliases)) != len(aliases):
        problems.append(("aliases", "must be a list of different spellings."))
    return {**values, "aliases": aliases}, problems


def _provider_row(row: Row) -> tuple[Row, list[tuple[str, str]]]:
    values: Row = {
        "slug": _take(row, "slug", str),
        "name": _take(row, "name", str),
        "website": _take(row, "website", str, ""),
        "invented": _take(row, "invented", bool, False),
    }
    # Only what the file says: the feed that staff gave to a provider is not taken away.
    values |= {name: _take(row, name, str) for name in ("feed_format", "feed_url") if name in row}
    _nothing_left(row)
    return values, _field_problems(Provider, values)


def _option_row(row: Row) -> tuple[Row, list[tuple[str, str]]]:
    values: Row = {
        "slug": _take(row, "slug", str),
        "name": _take(row, "name", str),
        "description": _take(row, "description", str, ""),
        "price_per_lot_day_usd": _amount(row, "price_per_lot_day_usd"),
        "max_quantity": _take(row, "max_quantity", int, 1),
    }
    _nothing_left(row)
    problems = _field_problems(Option, values)
    if values["price_per_lot_day_usd"] is None or values["price_per_lot_day_usd"] <= 0:
        problems.append(("price_per_lot_day_usd", "must be above 0."))
    return values, problems


def _machine_row(row: Row) -> tuple[Row, list[tuple[str, str]]]:
    hourly = _amount(row, "hourly_usd")
    unit = _take(row, "memory_unit", str, MemoryUnit.BYTES.value)
    figure = _amount(row, "memory", None)
    if unit not in MemoryUnit.values:
        raise _RowError("memory_unit", f"must be one of {', '.join(MemoryUnit.values)}.")
    default = {days: pricing.package_price(hourly, days) if hourly else None for days in pricing.STANDARD_TERMS_DAYS}
    values: Row = {
        "provider": _take(row, "provider", str),
        "name": _take(row, "name", str),
        "gpu": _take(row, "gpu", str),
        "gpu_count": _take(row, "gpu_count", int),
        "tier": _take(row, "tier", str),
        "country": _take(row, "country", (str, type(None)), None),
        "gpu_memory_bytes": None if figure is None else units.from_figure(figure, unit),
        "memory_unit": unit,
        "memory_source": _take(row, "memory_source", str, ""),
        "interruptible": _take(row, "interruptible", bool, False),
        "max_term_days": _take(row, "max_term_days", (int, type(None)), None),
        "lots": _take(row, "lots", int, 1),
        "listed": _take(row, "listed", bool, True),
        "online": _take(row, "online", bool, True),
        "hourly_usd": hourly,
        "price_3_days_usd": _amount(row, "price_3_days_usd", None),
        "price_7_days_usd": _amount(row, "price_7_days_usd", default[7]),
        "price_30_days_usd": _amount(row, "price_30_days_usd", default[30]),
    }
    values["free_lots"] = _take(row, "free_lots", int, values["lots"])
    _nothing_left(row)
    return values, [(problem.field, problem.message) for problem in machine_problems(values)]


# --- Writing ------------------------------------------------------------------------------------------------------


def _write(checked: Mapping[str, Rows], *, only_new: bool) -> Report:
    report = Report()
    aliases = {row["slug"]: row.pop("aliases") for row in checked["gpus.json"].values()}
    gpus = _upsert(Gpu, checked["gpus.json"].values(), ("slug",), only_new, report, "GPUs")
    _add_aliases(gpus, aliases, report, only_new=only_new)
    providers = _upsert(Provider, checked["providers.json"].values(), ("slug",), only_new, report, "Providers")
    machines = [
        {**row, "gpu": gpus[(row["gpu"],)], "provider": providers[(row["provider"],)]}
        for row in checked["machines.json"].values()
    ]
    _upsert(Machine, machines, ("provider", "name"), only_new, report, "Machines")
    _upsert(Option, checked["options.json"].values(), ("slug",), only_new, report, "Options")
    return report


def _upsert(
    model: type[models.Model], rows: Iterable[Row], key: tuple[str, ...], only_new: bool, report: Report, title: str
) -> dict[tuple[Any, ...], Any]:
    """Create what is missing and, unless `only_new`, change what differs. Saved one by one, so that history has it."""
    count = report.counts.setdefault(title, Counter())
    there = {tuple(getattr(row, name) for name in key): row for row in model._default_manager.all()}
    for row in rows:
        identity = tuple(row[name] for name in key)
        instance = there.get(identity)
        if instance is None:
            there[identity] = model._default_manager.create(**row)
            count["created"] += 1
        elif not only_new and _change(instance, row):
            count["updated"] += 1
        else:
            count["unchanged"] += 1
    return there


def _change(instance: Any, row: Row) -> bool:
    """Save the fields in which the row differs. Lots go their own way, because orders move them at the same time."""
    differing = [name for name, value in row.items() if getattr(instance, name) != value and name != "free_lots"]
    plain = [name for name in differing if name != "lots"]
    for name in plain:
        setattr(instance, name, row[name])
    if "lots" in differing and isinstance(instance, Machine):
        try:
            change_lots(instance.pk, row["lots"])
        except LotsUnderRent as error:
            raise SeedError([f"machines.json, {instance.name}, lots: {error}"]) from error
        instance.refresh_from_db(fields=["lots", "free_lots"])
    if differing:
        instance.save(update_fields=[*plain, *(["updated_at"] if isinstance(instance, Machine) else [])])
    return bool(differing)


def _add_aliases(
    gpus: Mapping[tuple[Any, ...], Gpu], aliases: Mapping[str, list[str]], report: Report, *, only_new: bool
) -> None:
    """Add the spellings that are missing; those that staff added stay. `only_new` gives them to new GPUs alone."""
    count = report.counts.setdefault("GPU aliases", Counter())
    there = set(GpuAlias.objects.values_list("gpu_id", "name"))
    with_aliases = {gpu_id for gpu_id, _ in there}
    new = []
    for slug, names in aliases.items():
        gpu_id = gpus[(slug,)].pk
        if only_new and gpu_id in with_aliases:
            count["unchanged"] += len(names)
            continue
        new += [GpuAlias(gpu_id=gpu_id, name=name) for name in names if (gpu_id, name) not in there]
        count["unchanged"] += sum((gpu_id, name) in there for name in names)
    bulk_create_with_history(new, GpuAlias, default_change_reason="Loaded with the catalog")
    count["created"] += len(new)

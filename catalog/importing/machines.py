"""Machines as a file: their facts and prices. Free lots are in no file, because orders own them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar

from catalog import units
from catalog.checks import MAX_MEMORY_BYTES, machine_problems
from catalog.importing.columns import Amount, Country, Reference, Text, Whole, YesNo, column
from catalog.importing.reading import Fault
from catalog.importing.tables import CHUNK, ByKey, Importable, Planned
from catalog.importing.writing import Held, Unapplicable, Write
from catalog.models import Gpu, Machine, MemorySource, MemoryUnit, Provider, Tier
from catalog.pricing import STANDARD_TERMS_DAYS, package_price
from catalog.stock import LotsUnderRent

_MOST_GIB = MAX_MEMORY_BYTES // units.GIB
# Of a machine that a feed keeps, staff decide this alone.
OWN_OF_FED = {"listed"}


def _lots_left(write: Write, held: tuple[int, int]) -> None:
    """Raises: Unapplicable when more lots are under rent by now than there would be."""
    lots, free_lots = held
    wanted = write.values.get("lots", lots)
    if wanted < lots - free_lots:
        raise Unapplicable(Fault(str(LotsUnderRent(wanted=wanted, rented=lots - free_lots)), write.line, "lots"))


class MachineTable(Importable):
    held: ClassVar = Held(("lots", "free_lots"), _lots_left, {"free_lots": "lots"})
    required: ClassVar = ("provider", "name")
    needed_when_new: ClassVar = ("gpu", "tier", "hourly_usd")

    provider = column("provider", Reference())
    name = column("name", Text())
    gpu = column("gpu", Reference())
    gpu_count = column("gpu_count", Whole())
    tier = column("tier", Text(words=Tier.values))
    country = column("country", Country())
    memory = column("memory", Amount(), "memory_stated")
    memory_unit = column("memory_unit", Text(words=MemoryUnit.values))
    memory_source = column("memory_source", Text(words=MemorySource.values))
    listed = column("listed", YesNo())
    online = column("online", YesNo())
    lots = column("lots", Whole())
    max_term_days = column("max_term_days", Whole())
    interruptible = column("interruptible", YesNo())
    hourly_usd = column("hourly_usd", Amount())
    price_3_days_usd = column("price_3_days_usd", Amount())
    price_7_days_usd = column("price_7_days_usd", Amount())
    price_30_days_usd = column("price_30_days_usd", Amount())

    class Meta:
        model = Machine
        fields = (
            "provider", "name", "gpu", "gpu_count", "tier", "country", "memory", "memory_unit", "memory_source",
            "listed", "online", "lots", "max_term_days", "interruptible", "hourly_usd", "price_3_days_usd",
            "price_7_days_usd", "price_30_days_usd",
        )  # fmt: skip
        import_id_fields = ("provider", "name")
        instance_loader_class = ByKey
        skip_diff = True

    def key(self, row: Any) -> tuple[str, str]:
        return str(row["provider"]).strip(), str(row["name"]).strip()

    def load(self, rows: list[Any]) -> dict[Any, Machine]:
        providers = {provider.slug: provider for provider in Provider.objects.all()}
        self.fields["provider"].widget.rows = providers
        self.fields["gpu"].widget.rows = gpus = {gpu.slug: gpu for gpu in Gpu.objects.all()}
        by_id = {gpu.pk: gpu for gpu in gpus.values()}
        names: dict[str, list[str]] = {}
        for slug, name in map(self.key, rows):
            names.setdefault(slug, []).append(name)
        found = {}
        for slug in names.keys() & providers.keys():
            for start in range(0, len(names[slug]), CHUNK):
                some = names[slug][start : start + CHUNK]
                for machine in Machine.objects.filter(provider=providers[slug], name__in=some):
                    machine.provider, machine.gpu = providers[slug], by_id[machine.gpu_id]
                    found[slug, machine.name] = machine
        return found

    def after_init_instance(self, instance: Any, new: bool, row: Any, **kwargs: Any) -> None:
        figure, instance.bytes_before = instance.memory_figure, instance.gpu_memory_bytes
        instance.memory_stated = None if figure is None else figure.normalize()
        super().after_init_instance(instance, new, row, **kwargs)

    def settle(self, instance: Any) -> None:
        if instance.memory_stated is None:
            instance.gpu_memory_bytes = None
            if not instance.memory_unit:
                # Of an unknown figure the unit says nothing.
                instance.memory_unit = MemoryUnit.BYTES if instance.before is None else instance.before["memory_unit"]
        elif instance.memory_unit in units.BYTES_PER_UNIT:
            instance.gpu_memory_bytes = units.from_figure(instance.memory_stated, instance.memory_unit)
            instance.memory_stated = units.to_figure(instance.gpu_memory_bytes, instance.memory_unit).normalize()
        instance.derived = set[str]()
        for days in STANDARD_TERMS_DAYS:
            name = f"price_{days}_days_usd"
            follows = self.leaves_empty(name) or (instance.before is None and not self.has(name))
            if follows:
                instance.derived.add(name)
            if follows and instance.hourly_usd is not None and instance.hourly_usd > 0:
                setattr(instance, name, package_price(instance.hourly_usd, days))
        if instance.before is None:
            instance.free_lots = instance.lots

    def faults_of(self, instance: Any) -> Iterator[tuple[str, str]]:
        if instance.provider.has_feed:
            if instance.before is None:
                yield "provider", f"{instance.provider} has a feed: a new machine of it comes from there alone."
                return
            shown = {each.attribute: each.column_name for each in self.get_import_fields()}
            for name in self.changed(instance):
                if name not in OWN_OF_FED:
                    yield shown[name], f"is kept by the feed of {instance.provider}: the next refresh would undo it."
            return
        stated = (each for each in instance._meta.concrete_fields if not each.generated)
        row = {each.name: getattr(instance, each.attname) for each in stated}
        problems = {problem.field: problem.message.replace("null", "empty") for problem in machine_problems(row)}
        # The stock of a row that is there is checked below, with a sentence of its own.
        problems.pop("free_lots", None)
        if "gpu_memory_bytes" in problems:
            del problems["gpu_memory_bytes"]
            problems["memory"] = f"must be above 0 and at most {_MOST_GIB:,} GiB, or empty when it is unknown."
        if "memory_unit" in problems:
            problems["memory_unit"] = f"must say what the memory is given in: {', '.join(MemoryUnit.values)}."
            # Without a unit the figure is none yet.
            problems.pop("memory_source", None)
        if "hourly_usd" in problems:
            for name in instance.derived:
                problems.pop(name, None)
        for name, sentence in problems.items():
            yield name, self.with_value(name, sentence)
        wrong = problems.keys()
        rented = 0 if instance.before is None else instance.before["lots"] - instance.free_lots
        if "lots" not in wrong and instance.lots < rented:
            yield "lots", str(LotsUnderRent(wanted=instance.lots, rented=rented))

    def values_of(self, planned: Planned, now: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
        machine, fields = planned.instance, set(planned.changed) - {"memory_stated"}
        new, was = super().values_of(planned._replace(changed=tuple(fields)), now)
        if {"memory_stated", "memory_unit"} & set(planned.changed):
            new["gpu_memory_bytes"], was["gpu_memory_bytes"] = machine.gpu_memory_bytes, machine.bytes_before
        return new | {"updated_at": now}, was

    def dehydrate_memory(self, machine: Machine) -> str:
        figure = machine.memory_figure
        return "" if figure is None else f"{figure.normalize():f}"

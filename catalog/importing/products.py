"""GPUs, their other spellings and the spellings of places as files."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar

from catalog.feeds import places
from catalog.importing.columns import Amount, Country, Lines, Reference, Text, Whole, YesNo, column
from catalog.importing.tables import ByKey, Importable
from catalog.models import Gpu, GpuAlias, PlaceAlias
from catalog.questions import close_understood


class NameTable(Importable):
    """Names that lists may have asked about."""

    def applied(self, now: datetime) -> None:
        close_understood(now)


class GpuTable(NameTable):
    required: ClassVar = ("slug",)
    needed_when_new: ClassVar = ("name", "vendor")

    slug = column("slug", Text())
    name = column("name", Text())
    vendor = column("vendor", Text())
    architecture = column("architecture", Text())
    form_factor = column("form_factor", Text())
    devices_per_card = column("devices_per_card", Whole())
    memory_type = column("memory_type", Text())
    compute_capability = column("compute_capability", Text())
    memory_gb_nominal = column("memory_gb_nominal", Whole())
    memory_mib_reported = column("memory_mib_reported", Whole())
    memory_bandwidth_gb_s = column("memory_bandwidth_gb_s", Amount())
    bf16 = column("bf16", YesNo(unknown=True))
    fp8 = column("fp8", YesNo(unknown=True))
    sources = column("sources", Lines())
    notes = column("notes", Text())

    class Meta:
        model = Gpu
        fields = (
            "slug", "name", "vendor", "architecture", "form_factor", "devices_per_card", "memory_type",
            "compute_capability", "memory_gb_nominal", "memory_mib_reported", "memory_bandwidth_gb_s", "bf16", "fp8",
            "sources", "notes",
        )  # fmt: skip
        import_id_fields = ("slug",)
        instance_loader_class = ByKey
        skip_diff = True

    def key(self, row: Any) -> str:
        return str(row["slug"]).strip()

    def load(self, rows: list[Any]) -> dict[Any, Gpu]:
        self._slugs_of_names = dict(Gpu.objects.values_list("name", "slug"))
        return {gpu.slug: gpu for gpu in Gpu.objects.all()}

    def faults_of(self, instance: Any) -> Iterator[tuple[str, str]]:
        told = set()
        for name, most in (("memory_gb_nominal", 10**6), ("memory_mib_reported", 10**9), ("devices_per_card", 1000)):
            value = getattr(instance, name)
            if value is not None and not 1 <= value <= most:
                told.add(name)
                yield name, self.with_value(name, f"must be from 1 to {most:,}, or empty when it is unknown.")
        # What a column can hold at the most differs between databases, and is more than a figure may be.
        yield from ((name, said) for name, said in super().faults_of(instance) if name not in told)
        owner = self._slugs_of_names.setdefault(instance.name, instance.slug)
        if owner != instance.slug:
            yield "name", f"is the name of {owner} already."


class GpuAliasTable(NameTable):
    """An alias is there or not: nothing of it is ever changed."""

    required: ClassVar = ("gpu", "name")

    gpu = column("gpu", Reference())
    name = column("name", Text())

    class Meta:
        model = GpuAlias
        fields = ("gpu", "name")
        import_id_fields = ("gpu", "name")
        instance_loader_class = ByKey
        skip_diff = True

    def key(self, row: Any) -> tuple[str, str]:
        return str(row["gpu"]).strip(), str(row["name"]).strip()

    def load(self, rows: list[Any]) -> dict[Any, GpuAlias]:
        self.fields["gpu"].widget.rows = {gpu.slug: gpu for gpu in Gpu.objects.all()}
        return {(alias.gpu.slug, alias.name): alias for alias in GpuAlias.objects.select_related("gpu")}


class PlaceAliasTable(NameTable):
    required: ClassVar = ("name",)

    name = column("name", Text())
    country = column("country", Country())

    class Meta:
        model = PlaceAlias
        fields = ("name", "country")
        import_id_fields = ("name",)
        instance_loader_class = ByKey
        skip_diff = True

    def key(self, row: Any) -> str:
        return places.key(str(row["name"]))

    def load(self, rows: list[Any]) -> dict[Any, PlaceAlias]:
        return {places.key(alias.name): alias for alias in PlaceAlias.objects.all()}

    def faults_of(self, instance: Any) -> Iterator[tuple[str, str]]:
        yield from super().faults_of(instance)
        if instance.before is None and not places.can_be_told(instance.name):
            yield "name", PlaceAlias.NEVER_TOLD

    def settle(self, instance: Any) -> None:
        # What a list reads alike is the same spelling: the one that is there stays.
        if instance.before is not None:
            instance.name = instance.before["name"]

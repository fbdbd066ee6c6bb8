"""Forms of the catalog's admin: figures with their unit, prices with defaults, each rule an error at its field."""

from decimal import Decimal
from typing import Any, ClassVar, cast

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from catalog import countries, units
from catalog.checks import MAX_PACKAGE_USD, machine_problems
from catalog.models import Gpu, Machine, MemoryUnit
from catalog.pricing import STANDARD_TERMS_DAYS, package_price, pro_rata, pro_rata_hourly
from catalog.web_addresses import web_addresses

# Where a rule is about a field that this form shows under another name.
_SHOWN_AS = {"gpu_memory_bytes": "memory_figure", "free_lots": "lots"}


class GpuForm(forms.ModelForm):
    """A GPU, whose sources are written one address a line."""

    sources = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}),
        help_text="Addresses where the figures were read, one a line.",
    )

    class Meta:
        model = Gpu
        fields = (
            "slug", "name", "vendor", "architecture", "form_factor", "devices_per_card", "memory_type",
            "compute_capability", "memory_gb_nominal", "memory_mib_reported", "memory_bandwidth_gb_s", "bf16", "fp8",
            "sources", "notes",
        )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["sources"] = "\n".join(self.instance.sources)

    def clean_sources(self) -> list[str]:
        addresses: list[str] = self.cleaned_data["sources"].split()
        web_addresses(addresses)
        return addresses


def fill_pro_rata(data: QueryDict) -> bool:
    """Write the packages of 3 and 30 days into the form's data, in proportion to its price for 7 days.

    An hourly price that is still missing follows too. False when there is no sound weekly price to start from.
    """
    try:
        weekly = MachineForm.base_fields["price_7_days_usd"].clean(data.get("price_7_days_usd"))
    except ValidationError:
        return False
    if weekly is None or not 0 < weekly <= MAX_PACKAGE_USD:
        return False
    data["price_3_days_usd"] = str(pro_rata(weekly, 3))
    data["price_30_days_usd"] = str(pro_rata(weekly, 30))
    if not data.get("hourly_usd", "").strip():
        data["hourly_usd"] = str(pro_rata_hourly(weekly))
    return True


class MachineForm(forms.ModelForm):
    """A machine: memory as the figure and the unit it is known in, package prices filled in when left empty."""

    country = forms.TypedChoiceField(required=False, empty_value=None)
    memory_figure = forms.DecimalField(
        label="Memory per GPU",
        required=False,
        max_digits=22,
        decimal_places=9,
        help_text="As stated, in the unit beside it. Empty when it is unknown: never recommended then.",
    )
    price_7_days_usd = forms.DecimalField(
        label="Price for 7 days (USD)",
        required=False,
        max_digits=12,
        decimal_places=2,
        help_text="Per lot. Empty: the hourly price × 24 × 7, rounded to the cent.",
    )
    change_reason = forms.CharField(
        label="Reason of this change", required=False, max_length=100, help_text="Kept in the machine's history."
    )
    price_30_days_usd = forms.DecimalField(
        label="Price for 30 days (USD)",
        required=False,
        max_digits=12,
        decimal_places=2,
        help_text="Per lot. Empty: the hourly price × 24 × 30, rounded to the cent.",
    )

    class Meta:
        model = Machine
        labels: ClassVar = {
            "gpu": "GPU",
            "gpu_count": "GPUs per lot",
            "memory_unit": "Unit",
            "hourly_usd": "Price per hour (USD)",
            "price_3_days_usd": "Price for 3 days (USD)",
        }
        fields = (
            "name", "provider", "gpu", "gpu_count", "tier", "country", "memory_unit", "memory_source", "listed",
            "online", "lots", "max_term_days", "interruptible", "hourly_usd",
            "price_3_days_usd", "price_7_days_usd", "price_30_days_usd",
        )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A machine kept by a feed shows these read-only: then they are not in the form.
        if "country" in self.fields:
            places = [(code, f"{name} ({code})") for code, name in countries.names().items()]
            cast(forms.ChoiceField, self.fields["country"]).choices = [("", "Unknown"), *places]
        if "memory_figure" in self.fields and self.instance.memory_figure is not None:
            self.initial["memory_figure"] = f"{self.instance.memory_figure.normalize():f}"
        if "memory_unit" in self.fields and self.instance.pk is None:
            self.initial.setdefault("memory_unit", MemoryUnit.GB)

    def clean(self) -> dict[str, Any]:
        self._take_memory()
        self._fill_prices()
        self._check_name()
        self._check_rules()
        self._check_lots()
        return self.cleaned_data

    def _value(self, name: str) -> Any:
        return self.cleaned_data[name] if name in self.fields else getattr(self.instance, name)

    def _take_memory(self) -> None:
        """Turn figure and unit into bytes, which are what every rule reads."""
        if "memory_figure" not in self.fields or {"memory_figure", "memory_unit"} & set(self.errors):
            return
        figure: Decimal | None = self.cleaned_data["memory_figure"]
        unit = self.cleaned_data["memory_unit"]
        self.instance.gpu_memory_bytes = None if figure is None else units.from_figure(figure, unit)

    def _fill_prices(self) -> None:
        self._filled: set[str] = set()
        hourly = self.cleaned_data.get("hourly_usd")
        if not hourly or hourly < 0:
            return
        for days in STANDARD_TERMS_DAYS:
            name = f"price_{days}_days_usd"
            if name in self.fields and name not in self.errors and self.cleaned_data[name] is None:
                self.cleaned_data[name] = package_price(hourly, days)
                self._filled.add(name)

    def _check_name(self) -> None:
        if {"name", "provider"} & set(self.errors):
            return
        same = Machine.objects.filter(provider=self._value("provider"), name=self._value("name"))
        if same.exclude(pk=self.instance.pk).exists():
            self.add_error(
                "name" if "name" in self.fields else None, "This provider has a machine of that name already."
            )

    def _check_rules(self) -> None:
        """The rules that seeds and feeds keep too. A field that is wrong in itself is not complained of twice."""
        wrong = set(self.errors)
        if wrong & {"memory_figure", "memory_unit"}:
            wrong.add("memory_source")
        # A package price is still empty only because the hourly price it comes from is wrong.
        wrong |= {
            name for name in ("price_7_days_usd", "price_30_days_usd") if self.cleaned_data.get(name, ...) is None
        }
        row = {name: None if name in wrong else self._value(name) for name in _RULED if name != "free_lots"}
        row["gpu_memory_bytes"] = self.instance.gpu_memory_bytes
        row["free_lots"] = self.instance.free_lots if self.instance.pk else row["lots"]
        problems = machine_problems(row)
        if any(problem.field == "hourly_usd" for problem in problems):
            wrong |= self._filled
        for problem in problems:
            shown = _SHOWN_AS.get(problem.field, problem.field)
            # Lots under rent have a check, and a sentence, of their own.
            if shown in self.fields and shown not in wrong and problem.field != "free_lots":
                self.add_error(shown, f"It {problem.message}")

    def _check_lots(self) -> None:
        if self.instance.pk is None or "lots" not in self.fields or "lots" in self.errors:
            return
        now = Machine.objects.values("lots", "free_lots").get(pk=self.instance.pk)
        rented = now["lots"] - now["free_lots"]
        if self.cleaned_data["lots"] < rented:
            self.add_error("lots", f"{rented} lots are under rent, so the machine cannot have fewer.")


_RULED = (
    "name",
    "tier",
    "country",
    "gpu_count",
    "lots",
    "free_lots",
    "max_term_days",
    "memory_source",
    "memory_unit",
    "hourly_usd",
    "price_3_days_usd",
    "price_7_days_usd",
    "price_30_days_usd",
)

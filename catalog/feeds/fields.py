"""Values of a row, each read by what its field documents. A fault has a stable code and names field, value and fix."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from catalog.feeds import offers
from catalog.feeds.json_rows import Keyed, number, slowly
from catalog.feeds.texts import clean, is_address, shown, without_addresses
from catalog.quoting import did_you_mean
from catalog.visible import is_plain_line, is_unseen

MOST_LOTS = 100_000
LONGEST_ID, LONGEST_NAME, LONGEST_GPU_NAME, LONGEST_PLACE = 64, 120, 120, 200
Row = TypeVar("Row", bound=msgspec.Struct)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The year 2200: behind it, a time is in milliseconds.
_LAST_SECOND = 7_258_118_400


class Fault(Exception):
    """One thing that is wrong with a row."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class RowReader(Generic[Row]):
    """Reads one row as a Struct whose fields are all `Any`: what they hold is checked by the functions below.

    Raises: Fault for what is no object, or gives a field that counts twice with different values.
    """

    def __init__(self, row_type: type[Row]) -> None:
        self._type = row_type
        self._strict = bool(row_type.__struct_config__.forbid_unknown_fields)
        self.names = row_type.__struct_encode_fields__
        self._needles = tuple(b'"' + name.encode() + b'"' for name in self.names)
        self._decoder = msgspec.json.Decoder(row_type, float_hook=number)

    def __call__(self, row: msgspec.Raw | bytes) -> Row:
        raw = bytes(row)
        # An escape can hide a letter of a key, and a key that is there twice decides nothing.
        if b"\\u" not in raw and all(raw.count(needle) < 2 for needle in self._needles):
            try:
                return self._decoder.decode(raw)
            except (msgspec.DecodeError, RecursionError):
                pass
        try:
            return self._slow(slowly(raw))
        except (ValueError, RecursionError):
            raise Fault("row_unreadable", "The row is not JSON that can be read.") from None

    def _slow(self, row: Any) -> Row:
        if not isinstance(row, Keyed):
            raise Fault("row_not_an_object", f"The row is {shown(row)}, not an object with the fields of an offer.")
        for key in row.repeated:
            if key in self.names:
                raise Fault(
                    "repeated_key", f"“{key}” is given twice with different values: which one counts is not known."
                )
        if self._strict and (unknown := [key for key in row if key not in self.names]):
            unknown_fields(unknown, self.names)
        return self._type(**{key: value for key, value in row.items() if key in self.names})


def unknown_fields(unknown: list[str], known: Collection[str]) -> NoReturn:
    """Raises: Fault naming the first unknown field and the nearest known one."""
    hint = did_you_mean(unknown[0], known) or f" Known are {', '.join(sorted(known))}."
    raise Fault("unknown_field", f"{shown(unknown[0])} is no field of this format.{hint}")


def identifier(value: Any, field: str, code: str, *, least: int = 1) -> str:
    """What a provider calls something: a whole number from `least`, or a text of printable characters."""
    if value is None:
        raise Fault(f"{code}_missing", f"“{field}” is missing: without it nothing tells this one from others.")
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        value = str(value)
    if isinstance(value, str) and _is_name(value) and (least == 0 or value.strip("0")):
        return value
    raise Fault(
        f"{code}_invalid",
        f"“{field}” is {shown(value)}; give a whole number from {least} or a text of up to {LONGEST_ID} characters "
        "that can be seen and is no address.",
    )


def _is_name(text: str) -> bool:
    if not 0 < len(text) <= LONGEST_ID or text != text.strip() or is_address(text):
        return False
    return is_plain_line(text) and (text.isascii() or not any(map(is_unseen, text)))


def text(value: Any, field: str, code: str, most: int) -> str:
    """A text that must be there, without addresses."""
    if value is None:
        raise Fault(f"{code}_missing", f"“{field}” is missing.")
    cleaned = clean(without_addresses(clean(value, most)), most) if isinstance(value, str) else ""
    if not cleaned:
        raise Fault(
            f"{code}_invalid",
            f"“{field}” is {shown(value)}; give a text of up to {most} characters that can be seen and is no address.",
        )
    return cleaned


def gpu_name(value: Any, field: str) -> str:
    return text(value, field, "gpu_name", LONGEST_GPU_NAME)


def place(value: Any, field: str) -> str | None:
    """A place as it is spelled, without IP addresses; None when none is told."""
    if value is not None and not isinstance(value, str):
        raise Fault("place_invalid", f"“{field}” is {shown(value)}; give a text, or null when the place is unknown.")
    return clean(without_addresses(clean(value or "", LONGEST_PLACE)), LONGEST_PLACE) or None


def gpu_count(value: Any, field: str) -> int:
    if value is None:
        raise Fault("gpu_count_missing", f"“{field}” is missing: how many GPUs are offered?")
    count = _whole(value)
    if count is None or not 1 <= count <= offers.MOST_GPUS:
        raise Fault("gpu_count_invalid", f"“{field}” is {shown(value)}; offers have 1 to {offers.MOST_GPUS} GPUs.")
    return count


def lots(value: Any, field: str, *, least: int) -> int:
    count = _whole(value)
    if count is None or not least <= count <= MOST_LOTS:
        raise Fault("lots_invalid", f"“{field}” is {shown(value)}; give a whole number from {least} to {MOST_LOTS:,}.")
    return count


def whole(value: Any, field: str, code: str) -> int:
    number = _whole(value)
    if number is None:
        raise Fault(f"{code}_invalid", f"“{field}” is {shown(value)}; give a whole number.")
    return number


def memory(value: Any, field: str, bytes_per_unit: int, *, gpus: int = 1) -> int | None:
    """Bytes per GPU of a figure for `gpus` of them. Null and 0 say unknown, which is no fault."""
    if value is None or (figure := _decimal(value)) == 0:
        return None
    size = None if figure is None else int((figure * bytes_per_unit / gpus).to_integral_value(ROUND_FLOOR))
    if size is None or not offers.LEAST_MEMORY_BYTES <= size <= offers.MOST_MEMORY_BYTES:
        raise Fault(
            "memory_invalid",
            f"“{field}” is {shown(value)}; memory per GPU lies between 256 MiB and 2 TiB, and null says it is unknown.",
        )
    return size


def is_nothing(value: Any) -> bool:
    """Whether a price says "not sold": null or 0."""
    return value is None or _decimal(value, as_text=True) == 0


def price(value: Any, field: str) -> Decimal:
    """An amount in USD above 0, a number or a text."""
    if value is None:
        raise Fault("price_missing", f"“{field}” is missing: without a price nothing is sold.")
    amount = _decimal(value, as_text=True)
    if amount is None:
        raise Fault("price_not_a_number", f"“{field}” is {shown(value)}; give an amount in USD such as 0.40.")
    if amount == 0:
        raise Fault("price_zero", f"“{field}” is 0: that means not sold, never free.")
    if amount < 0:
        raise Fault("price_negative", f"“{field}” is {shown(value)}; a price is above 0.")
    return amount


def hourly_usd(amount: Decimal, field: str, count: int) -> Decimal:
    """The price of an hour of all `count` GPUs as the catalog keeps it, when it can be a real one."""
    per_gpu, unreal = amount / count, "USD per GPU and hour is no real price."
    if per_gpu < offers.LEAST_USD_PER_GPU_HOUR:
        raise Fault("price_too_low", f"“{field}” is {shown(amount)}: under {offers.LEAST_USD_PER_GPU_HOUR} {unreal}")
    if per_gpu > offers.MOST_USD_PER_GPU_HOUR:
        raise Fault("price_too_high", f"“{field}” is {shown(amount)}: over {offers.MOST_USD_PER_GPU_HOUR} {unreal}")
    return offers.to_six_places(amount)


def package_usd(amount: Decimal, field: str, hourly: Decimal, days: int) -> Decimal:
    """The price of a term, in cents; from a fifth to twice of what its hours cost, or it is a slip."""
    by_the_hour = hourly * 24 * days
    if not by_the_hour / 5 <= amount <= by_the_hour * 2:
        raise Fault(
            "package_price_invalid",
            f"“{field}” is {amount}, but {days} days by the hour cost {by_the_hour:.2f} USD: one is a slip.",
        )
    if amount != amount.quantize(Decimal("0.01")) or amount == 0:
        raise Fault("package_price_invalid", f"“{field}” is {amount}; give at most two decimals.")
    return amount


def flag(value: Any, field: str, *, default: bool) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool):
        raise Fault("flag_invalid", f"“{field}” is {shown(value)}; give true or false.")
    return value


def epoch(value: Any, field: str) -> datetime | None:
    """A moment as seconds since 1970, or None."""
    if value is None:
        return None
    seconds = _decimal(value)
    if seconds is None or not 0 <= seconds <= _LAST_SECOND:
        raise Fault("time_invalid", f"“{field}” is {shown(value)}; give seconds since 1970, or null.")
    return _EPOCH + timedelta(microseconds=int(seconds * 1_000_000))


def seconds_left(value: Any, field: str, now: datetime) -> datetime | None:
    """The moment that lies so many seconds ahead, or None."""
    if value is None:
        return None
    seconds = _decimal(value)
    if seconds is None or abs(seconds) > _LAST_SECOND:
        raise Fault("time_invalid", f"“{field}” is {shown(value)}; give the seconds that are left, or null.")
    return now + timedelta(seconds=int(seconds.to_integral_value(ROUND_FLOOR)))


def moment(value: Any, field: str) -> datetime | None:
    """A moment in RFC 3339 with its offset, or None."""
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) and "T" in value else None
        if found is not None and found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Fault("time_invalid", f"“{field}” is {shown(value)}; give a time such as 2026-12-31T12:00:00Z, or null.")


def _decimal(value: Any, *, as_text: bool = False) -> Decimal | None:
    if isinstance(value, str) and as_text:
        try:
            value = Decimal(value) if value.isascii() and len(value) <= 40 and "_" not in value else None
        except InvalidOperation:
            return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    found = Decimal(value)
    # Exponents beyond this are no figure of a machine, and would take memory to write out.
    return found if found.is_finite() and abs(found.adjusted()) <= 30 else None


def _whole(value: Any) -> int | None:
    found = _decimal(value)
    return int(found) if found is not None and found == found.to_integral_value() else None

"""Feeds that ship with Berth, in its own format: invented machines that come, go and change their price.

What they have depends on the clock alone, so the same minute gives the same list, to everybody who asks.
"""

import hashlib
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

_SEEDS = Path(__file__).parent.parent / "seeds" / "feeds"
# By name, and no other file: an address of a feed is text that somebody typed.
FEEDS = ("rowan", "willow")

_MINUTES_OF_A_PRICE = 10
_MILL = Decimal("0.001")


def body(name: str, now: datetime) -> bytes:
    """The list as it is in this minute. Every second offer is steady: the list never shrinks below its half."""
    if name not in FEEDS:
        raise ValueError(name)
    minute = int(now.timestamp()) // 60
    offers = json.loads((_SEEDS / f"{name}.json").read_text(encoding="utf-8"))
    there = [offer for number, offer in enumerate(offers) if number % 2 == 0 or _is_there(offer["id"], minute)]
    return json.dumps({"offers": [_priced(offer, minute) for offer in there]}).encode()


def _is_there(offer_id: str, minute: int) -> bool:
    """Three times of four, for three to six minutes at a time, each offer at its own pace."""
    pace = 3 + _chance(offer_id) % 4
    return _chance(offer_id, (minute + _chance("phase", offer_id) % pace) // pace) % 4 != 0


def _priced(offer: dict[str, Any], minute: int) -> dict[str, Any]:
    """The price moves by up to 3 % of what the file says."""
    per_cent = _chance("price", offer["id"], minute // _MINUTES_OF_A_PRICE) % 7 - 3
    hourly_usd = (Decimal(offer["hourly_usd"]) * (100 + per_cent) / 100).quantize(_MILL)
    return {**offer, "hourly_usd": str(hourly_usd)}


def _chance(*about: str | int) -> int:
    """A number that looks drawn and is always the same for the same things."""
    return int.from_bytes(hashlib.sha256(repr(about).encode()).digest()[:4], "big")

"""How often a key or an address may call. The counts are in the cache, so several web processes count together."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import AnonRateThrottle, SimpleRateThrottle

if TYPE_CHECKING:
    # The framework's views load this module by their settings: importing them here would go in a circle.
    from rest_framework.views import APIView

logger = logging.getLogger(__name__)

BUCKETS = 12


@dataclass(frozen=True)
class RateLeft:
    """What the headers of an answer say. Units: `reset` in seconds, until the oldest counted requests are forgotten."""

    limit: int
    remaining: int
    reset: int


class BucketThrottle(SimpleRateThrottle):
    """At most the rate's number of requests in its duration, counted in twelfths of it.

    The framework's own throttle reads a list, adds to it and writes it back: of requests at the same moment it forgets
    all but one. Here each request adds to a counter, which the cache does in one step.
    """

    # Read from the rate by the framework.
    num_requests: int
    duration: int

    def allow_request(self, request: Request, view: APIView) -> bool:
        key = self.get_cache_key(request, view) if self.rate else None
        if key is None:
            return True
        try:
            allowed = self._count(key)
            # On Django's own request, where the middleware that writes the headers finds it.
            request._request.rate_limit = self.left()  # type: ignore[attr-defined]
            return allowed
        except (RedisError, OSError):
            # A cache that is away must not take the service with it.
            logger.warning("Requests are not counted: the cache is away.", exc_info=True)
            return True

    def _count(self, key: str) -> bool:
        names = self._names(key)
        newest = max(names)
        self.cache.add(names[newest], 0, timeout=int(self.duration * 2))
        self.cache.incr(names[newest])
        if self._read(names) <= self.num_requests:
            return True
        # What was refused does not count: who keeps asking gets in again as soon as who waits.
        self.cache.decr(names[newest])
        self.counted[newest] -= 1
        return False

    def _names(self, key: str) -> dict[int, str]:
        self.now = time.time()
        newest = int(self.now // (self.duration / BUCKETS))
        return {number: f"{key}:{number}" for number in range(newest - BUCKETS + 1, newest + 1)}

    def _read(self, names: dict[int, str]) -> int:
        counts = self.cache.get_many(names.values())
        self.counted = {number: int(counts.get(name, 0)) for number, name in names.items()}
        return sum(self.counted.values())

    def left(self) -> RateLeft:
        span = self.duration / BUCKETS
        oldest = min((number for number, count in self.counted.items() if count > 0), default=int(self.now // span))
        return RateLeft(
            limit=self.num_requests,
            remaining=max(self.num_requests - sum(self.counted.values()), 0),
            reset=max(math.ceil((oldest + BUCKETS) * span - self.now), 1),
        )

    def wait(self) -> float:
        """Seconds until enough of the counted requests are too old to count."""
        span = self.duration / BUCKETS
        left = sum(self.counted.values())
        for number, count in sorted(self.counted.items()):
            left -= count
            if left < self.num_requests:
                return max((number + BUCKETS) * span - self.now, 1.0)
        return float(self.duration)


class KeyThrottle(BucketThrottle):
    """Each key by itself; no key takes anything from another."""

    scope = "key"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        return None if request.auth is None else f"throttle:key:{request.auth.pk}"


class AddressThrottle(BucketThrottle, AnonRateThrottle):
    """Callers without a key, by their address as the trusted proxies saw it."""

    def get_cache_key(self, request: Request, view: APIView) -> Any:
        if request.auth is not None:
            return None
        return self.cache_format % {"scope": self.scope, "ident": self.get_ident(request)}


class WrongKeyThrottle(BucketThrottle):
    """Wrong keys by one address. Only what fails is counted, and it is asked before a key is looked up."""

    scope = "wrong_key"

    def get_cache_key(self, request: Request, view: APIView | None) -> str:
        return self.cache_format % {"scope": self.scope, "ident": self.get_ident(request)}

    def check(self, request: Request) -> None:
        """Raises: Throttled when the address sent too many wrong keys."""
        try:
            spent = self.rate and self._read(self._names(self.get_cache_key(request, None))) >= self.num_requests
        except (RedisError, OSError):
            logger.warning("Wrong keys are not counted: the cache is away.", exc_info=True)
            return
        if spent:
            request._request.rate_limit = self.left()  # type: ignore[attr-defined]
            raise Throttled(self.wait())

    def count(self, request: Request) -> None:
        self.allow_request(request, None)  # type: ignore[arg-type]

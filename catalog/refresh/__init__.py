"""One provider's list made the catalog's: fetched, read, resolved, compared, and only what changed is written.

Whatever comes back from the feed, the last good rows stay: a list that cannot be read, is empty, or differs in a way
that looks like an accident is recorded and not applied. Orders go on meanwhile: writes are short, a row that an order
holds is left for the next time, and a machine under rent is never written to: what its list does not offer of it is
kept beside it, and not sold.
"""

from catalog.refresh.reviewing import NothingHeld, accept_held
from catalog.refresh.running import refresh_provider
from catalog.refresh.turns import Busy

__all__ = ["Busy", "NothingHeld", "accept_held", "refresh_provider"]

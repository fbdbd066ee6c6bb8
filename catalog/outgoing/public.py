"""Which addresses belong to the public internet: nothing else may be asked on behalf of a feed or a webhook.

Source: IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), RFC 4291, RFC 6052, RFC 9637.
"""

from __future__ import annotations

import ipaddress

# Written out: what Python's own `is_global` says of some of these differs between its versions.
_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # behind a carrier's translation
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, and the metadata services of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# Everything that is routed lies in here. Outside: loopback, fc00::/7, fe80::/10, multicast, and the forms that carry an
# IPv4 address: ::ffff:0:0/96, 64:ff9b::/96 and 64:ff9b:1::/48.
_ROUTED_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them, which carries an IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which carries an IPv4 address
        "3fff::/20",  # documentation
    )
)


def is_public(address: str) -> bool:
    """Whether a numeric address is one of the public internet; what is no address is not."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in network for network in _NOT_PUBLIC_4)
    return parsed.scope_id is None and parsed in _ROUTED_6 and not any(parsed in network for network in _NOT_PUBLIC_6)

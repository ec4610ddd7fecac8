"""The guard between untrusted addresses and our network: what is judged is what gets connected.

Three gates in a row, none of which trusts the one before it. `Guard.checked` refuses addresses by their spelling;
`GuardedResolver` refuses a name if *any* of its addresses is forbidden (a refused one would otherwise fall through to
the next); `Guard.open_socket` sees every single connect, literals included. No verdict is remembered, so a name that
points elsewhere a moment later is judged again.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import TypeAlias

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from tidings.model.errors import Misconfigured, Permanent
from tidings.model.urls import URL_CHARS_MAX, shown_url

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
AddressInfo: TypeAlias = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]

PUBLIC_PORTS = frozenset({80, 443})

# Our own table, because the standard library's differs from version to version: Python 3.11 calls 64:ff9b::/96,
# 2002::/16, 192.88.99.0/24 and multicast global. Ranges that IANA lists as special but reachable stay out too where
# nobody publishes pages (benchmarks, anycast services, translation prefixes with an address of the inside in them).
_FORBIDDEN_V4 = [
    ipaddress.IPv4Network(net)
    for net in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's platform address: public by number, internal by nature.
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
_GLOBAL_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_FORBIDDEN_V6 = [
    ipaddress.IPv6Network(net)
    for net in (
        "::/96",
        "::ffff:0:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",  # Teredo, benchmarking, ORCHID and other protocol assignments.
        "2001:db8::/32",
        "2002::/16",
        "2620:4f:8000::/48",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
]

# Names that never lead to a public site; refused before anybody is asked about them.
_INTERNAL_SUFFIXES = (
    ".localhost",
    ".localdomain",
    ".local",
    ".internal",
    ".intranet",
    ".lan",
    ".corp",
    ".home",
    ".home.arpa",
    ".onion",
)
_AUTHORITY = re.compile(r"(?i:https?)://([^/?#]*)")
_FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff\u2028\u2029]")
_NAME = re.compile(r"(?=.{4,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ENDS_IN_NUMBER = re.compile(r"(^|\.)([0-9]+|0x[0-9a-f]*)$")


class Forbidden(Permanent):
    """An address that untrusted content must not make us visit."""


def is_public(address: str | Address) -> bool:
    """Tell whether an address belongs to the public internet, by our own table; anything unreadable does not."""
    try:
        parsed = ipaddress.ip_address(address) if isinstance(address, str) else address
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.scope_id is not None:
            return False
        if parsed.ipv4_mapped is not None:
            return is_public(parsed.ipv4_mapped)
        in_table = parsed not in _GLOBAL_UNICAST_V6 or any(parsed in net for net in _FORBIDDEN_V6)
    else:
        in_table = any(parsed in net for net in _FORBIDDEN_V4)
    return not in_table and parsed.is_global and not parsed.is_multicast and not parsed.is_reserved


class Guard:
    """Judges addresses: public ones on ports 80 and 443, plus an exact set of loopback host and port pairs."""

    def __init__(self, loopback_allowed: frozenset[tuple[str, int]] = frozenset()) -> None:
        self._hosts = loopback_allowed
        self._addresses = frozenset(
            (address, port) for host, port in loopback_allowed for address in _loopback_addresses(host)
        )

    def checked(self, text: str) -> URL:
        """Parse an absolute address once; return the object to be requested, or raise Forbidden."""
        if len(text) > URL_CHARS_MAX or _FORBIDDEN_CHARACTERS.search(text):
            raise _refused(text, "too long, or contains control characters or a backslash")
        authority = _AUTHORITY.match(text)
        if authority is None:
            raise _refused(text, "not an absolute http or https address")
        if "@" in authority[1] or "%" in authority[1]:
            raise _refused(text, "credentials, escapes and zones have no place in a host")
        try:
            url = URL(text).with_fragment(None)
            host, port = url.raw_host or "", url.port or 0
        except ValueError as error:
            raise _refused(text, "not a readable address") from error
        if ("[" in authority[1] or "]" in authority[1]) != (":" in host):
            raise _refused(text, "brackets hold IPv6 addresses and nothing else")
        if (host, port) not in self._hosts:
            self._judge(host, port, text, literal_as_written=host in authority[1].lower())
        return url

    def next_hop(self, current: URL, location: str) -> URL:
        """Judge where a redirect leads, from the first step on, and never down from https to http."""
        if _FORBIDDEN_CHARACTERS.search(location):
            raise Forbidden(f"{shown_url(str(current))} redirects to an address with control characters or a backslash")
        try:
            target = str(current.join(URL(location)))
        except ValueError as error:
            raise Forbidden(f"{shown_url(str(current))} redirects to an unreadable address") from error
        url = self.checked(target)
        if current.scheme == "https" and url.scheme != "https":
            raise Forbidden(f"{shown_url(str(current))} redirects from https to plain http at {url.raw_host}")
        return url

    def allows(self, address: str, port: int) -> bool:
        """Tell whether a connection to this very address and port may be made."""
        return (port in PUBLIC_PORTS and is_public(address)) or (address, port) in self._addresses

    def open_socket(self, info: AddressInfo) -> socket.socket:
        """Make the socket for one connect, or refuse; the last gate, and the only one literals cannot avoid."""
        family, kind, protocol, _, target = info
        address, port = str(target[0]), target[1]
        if not isinstance(port, int) or not self.allows(address, port):
            raise Forbidden(f"refused to connect to {address} port {port}: not a public web address")
        return socket.socket(family=family, type=kind, proto=protocol)

    def _judge(self, host: str, port: int, text: str, *, literal_as_written: bool) -> None:
        if port not in PUBLIC_PORTS:
            raise _refused(text, f"port {port} is not a public web port")
        if ":" in host or _ENDS_IN_NUMBER.search(host.rstrip(".")):
            # A literal must be written as such: 2130706433, 0x7f.1, 127.1 and circled digits are names in disguise.
            if not is_public(host) or not (":" in host or literal_as_written):
                raise _refused(text, "not the address of a public host")
            return
        name = host.removesuffix(".")
        if name.endswith(_INTERNAL_SUFFIXES) or not _NAME.fullmatch(name):
            raise _refused(text, "not the name of a public host")


class GuardedResolver(AbstractResolver):
    """Resolves names and refuses those with any forbidden address among the answers."""

    def __init__(self, inner: AbstractResolver, guard: Guard) -> None:
        self._inner = inner
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a name, all of them allowed."""
        answers = await self._inner.resolve(host, port, family)
        for answer in answers:
            if not self._guard.allows(answer["host"], port):
                raise Forbidden(f"refused {host}: it resolves to {answer['host']}, not a public web address")
        return answers

    async def close(self) -> None:
        """Close the resolver behind."""
        await self._inner.close()


def _refused(text: str, why: str) -> Forbidden:
    return Forbidden(f"refused {shown_url(text)}: {why}")


def _loopback_addresses(host: str) -> tuple[str, ...]:
    if host == "localhost":
        return ("127.0.0.1", "::1")
    try:
        if ipaddress.ip_address(host).is_loopback:
            return (host,)
    except ValueError:
        pass
    raise Misconfigured(f"only loopback addresses can be allowed for pages, not {host!r}")

"""How much of other people's servers, and of our own time and memory, one request may use."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of every request; the defaults are the promise, tests use shorter ones."""

    redirects: int = 5
    first_byte_seconds: float = 10.0
    """From the start of a hop to the end of its response headers."""
    total_seconds: float = 30.0
    """All hops of a page together, without polite waiting."""
    wire_bytes: int = 5 * MIB
    body_bytes: int = 20 * MIB
    """After decompression."""
    endpoint_wire_bytes: int = 16 * MIB
    endpoint_body_bytes: int = 32 * MIB
    header_bytes: int = 32 * 1024
    """One header line."""
    headers: int = 128
    robots_bytes: int = 512 * 1024
    robots_seconds: float = 24 * 3600.0
    robots_retry_seconds: float = 300.0
    """How long an unreachable robots.txt is not asked for again."""
    host_wait_seconds: float = 60.0
    """How long a page may wait politely for its host's turn."""
    crawl_delay_seconds_max: float = 30.0
    cached_body_bytes: int = 2 * MIB
    cached_seconds: int = 7 * 24 * 3600
    backoff_base_seconds: float = 0.5
    backoff_cap_seconds: float = 10.0

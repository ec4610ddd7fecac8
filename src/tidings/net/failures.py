"""Translates the client library's exceptions into ours, at the edge of the room.

Messages name what failed without query strings. The library's own messages may repeat whole addresses, and an address
may hold a credential: pages keep the cause only if it does not, calls to endpoints drop it always (`from None`).
"""

from __future__ import annotations

import ssl

import aiohttp

from tidings.model.errors import Ambiguous, Misconfigured, Permanent, TidingsError, Transient

FAILURES = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
"""What a request may raise besides our own errors."""


def page_failure(error: Exception, shown: str) -> TidingsError:
    """Say what a failed page means: a bad certificate or address stays bad, all else may heal."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
        return Permanent(f"{shown} has a certificate that cannot be trusted: {_certificate_reason(error)}")
    if isinstance(error, ValueError):
        return Permanent(f"{shown} cannot be requested: {type(error).__name__}")
    return Transient(f"{shown} {_what_happened(error)}")


def cause(error: Exception) -> Exception | None:
    """Return what may be kept as the cause of a page's failure: nothing that spells out an address."""
    return None if "://" in str(error) else error


def call_failure(error: Exception, shown: str, *, sent: bool, idempotent: bool) -> TidingsError:
    """Say what a failed call means; once a request that changes things was sent, its outcome is unknown."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
        reason = _certificate_reason(error)
        return Misconfigured(f"{shown} has a certificate that cannot be trusted: {reason}; check address and clock")
    what = str(error) if isinstance(error, TidingsError) else f"{shown} {_what_happened(error)}"
    if sent and not idempotent:
        return Ambiguous(f"{what}; the request had been sent and may have taken effect")
    if isinstance(error, TidingsError):
        return error
    if isinstance(error, ValueError) and not isinstance(error, aiohttp.ClientError):
        return Misconfigured(f"{shown} cannot be called: {type(error).__name__}; check its address and headers")
    return Transient(what)


def _what_happened(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "has no address: the name does not resolve"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return "failed the TLS handshake"
    if isinstance(error, TimeoutError):
        return "did not answer in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot be reached ({error.os_error.strerror or type(error.os_error).__name__})"
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError):
        return "closed the connection without an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "broke off in the middle of its answer"
    if isinstance(error, aiohttp.ClientResponseError):
        return "answered with something that is not proper HTTP"
    return f"failed ({type(error).__name__})"


def _certificate_reason(error: Exception) -> str:
    cause = getattr(error, "certificate_error", error)
    return str(getattr(cause, "verify_message", "") or type(cause).__name__)

"""The error tree: its first branch says what to do.

TidingsError
├── Transient        try again later, by the retry policy
│   ├── SlowDown     a rate limit: wait, and give the attempt back
│   ├── Ambiguous    the effect may or may not have happened
│   └── SearchTooSlow a query took longer than any may
├── Permanent        trying again cannot help: bury now
├── Misconfigured    refuse to start, or pause the part that needs fixing
├── BadInput         what a caller sent is wrong: tell the caller what, where, what helps
└── StoreUnavailable the database does not answer
    └── StoreReadOnly  it may only be read

Messages tell which thing, what was tried and what helps. They never hold a credential.
"""

from __future__ import annotations


class TidingsError(Exception):
    """The root; never raised itself."""


class Transient(TidingsError):
    """A failure that time may heal."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class SlowDown(Transient):
    """The other side asked us to wait; waiting costs no attempt."""


class Ambiguous(Transient):
    """A request was sent and its outcome is unknown."""


class SearchTooSlow(Transient):
    """A query took longer than any may; one that asks for less may be answered."""


class Permanent(TidingsError):
    """A failure that no retry heals; `status` is the HTTP status where one said so, `cause` what to group it by."""

    def __init__(self, message: str, *, status: int | None = None, cause: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.cause = cause


class Misconfigured(TidingsError):
    """A setting, key or permission that a person must mend."""


class BadInput(TidingsError):
    """What a caller sent is wrong; `position` points at the offending character where there is one."""

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class StoreUnavailable(TidingsError):
    """The database cannot be reached, is full, read-only or damaged."""


class StoreReadOnly(StoreUnavailable):
    """It may be read by this process and not written."""

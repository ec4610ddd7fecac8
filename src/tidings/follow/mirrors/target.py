"""What every place that holds a mirror can do; coalescing, budget, position, check and repair are built on it once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tidings.model.errors import Transient

KEY_BYTES_MAX = 512
"""What Cloudflare allows a key; with it, a mirror may move from one key-value store to another."""


class WrittenByAnother(Transient):
    """Another process has replaced a value since this one read it."""


class Target(Protocol):
    """A key-value store somewhere else. Every call raises Transient where trying again may help."""

    place: str
    """What to call it in messages: never with a credential."""
    has_paths: bool
    """Its keys are paths of files, which a web server gives out as they are."""
    key_bytes_max: int
    """The longest key it takes, besides a prefix of its own; longer names are shortened."""
    batch_max: int
    """The most keys of one call of `put_many`."""

    async def hold(self) -> bool:
        """Become the one writer, or stay it; False while another process is."""
        ...

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values that exist."""
        ...

    async def put_many(self, values: Mapping[str, bytes]) -> set[str]:
        """Write values, and return the keys that were not written and should be tried again."""
        ...

    async def delete_many(self, keys: Sequence[str]) -> None:
        """Remove keys; one that is missing is no error."""
        ...

    async def keys(self, prefix: str) -> set[str]:
        """Return every key that begins so."""
        ...

    async def tag(self, key: str) -> str | None:
        """Return what changes whenever `replace` writes the key; None where there is none. Cheaper than the value."""
        ...

    async def replace(self, key: str, value: bytes, tag: str | None) -> str | None:
        """Write one value unless another process has since `tag` was read (WrittenByAnother); return the new tag."""
        ...

    async def close(self) -> None:
        """Let go of connections and of the right to write."""
        ...

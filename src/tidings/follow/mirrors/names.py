"""The names of things in a target: keys as in a key-value store, or paths as the API has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol
from urllib.parse import quote

from tidings.follow.mirrors.target import Target
from tidings.model.publication import Collection

FILE_BYTES_MAX = 200
"""File systems allow 255; a suffix, and a name while it is being written, need some of that."""
CATALOGS = "tidings:catalog:"


@dataclass(frozen=True, slots=True)
class MirroredCollection:
    """A collection that is mirrored."""

    name: str
    singular: str
    has_ids: bool
    """It is listed by the id index of the store."""
    index_name: str
    """What its id index is called in the target."""


@dataclass(frozen=True, slots=True)
class MirroredPipeline:
    """What is mirrored of a pipeline."""

    name: str
    collections: Mapping[str, MirroredCollection] = field(default_factory=dict)

    def collection_of(self, key: str) -> tuple[MirroredCollection, str] | None:
        """Return the collection and the id that a shelf key means, or None where it is not mirrored."""
        singular, _, card_id = key.partition(":")
        for collection in self.collections.values():
            if collection.singular == singular:
                return collection, card_id
        return None


def mirrored(collection: Collection, index_name: str | None = None) -> MirroredCollection:
    """Choose a declared collection for a mirror."""
    name = index_name or f"index:{collection.name}"
    return MirroredCollection(collection.name, collection.singular, collection.id_index, name)


class Names(Protocol):
    """How things are called in a target."""

    def card(self, pipeline: str, collection: MirroredCollection, card_id: str) -> str:
        """Return the key of a card."""
        ...

    def cards(self, pipeline: str, collection: MirroredCollection) -> str:
        """Return what the keys of all cards of a collection begin with."""
        ...

    def index(self, collection: MirroredCollection) -> str:
        """Return the key of an id index."""
        ...

    def catalog(self, pipeline: str) -> str:
        """Return the key of a catalog."""
        ...

    def pipelines(self, keys: set[str]) -> list[str]:
        """Return the pipelines whose catalogs are among keys."""
        ...


class KeyNames:
    """`article:17`, an id index such as `BTC_ID_INDEX`, `tidings:catalog:bitcoin_news`."""

    catalogs = CATALOGS

    def __init__(self, key_bytes_max: int) -> None:
        self._key_bytes_max = key_bytes_max

    def card(self, _pipeline: str, collection: MirroredCollection, card_id: str) -> str:
        """Return the key of a card."""
        return shortened(f"{collection.singular}:{card_id}", self._key_bytes_max)

    def cards(self, _pipeline: str, collection: MirroredCollection) -> str:
        """Return what the keys of all cards of a collection begin with."""
        return f"{collection.singular}:"

    def index(self, collection: MirroredCollection) -> str:
        """Return the key of an id index."""
        return collection.index_name

    def catalog(self, pipeline: str) -> str:
        """Return the key of a catalog."""
        return f"{CATALOGS}{pipeline}"

    def pipelines(self, keys: set[str]) -> list[str]:
        """Return the pipelines whose catalogs are among keys."""
        return sorted(key.removeprefix(CATALOGS) for key in keys if key.startswith(CATALOGS))


class PathNames:
    """`api/v1/bitcoin_news/articles/17.json`, `index/BTC_ID_INDEX.json`, `tidings/bitcoin_news.json`."""

    catalogs = "tidings/"

    def card(self, pipeline: str, collection: MirroredCollection, card_id: str) -> str:
        """Return the path of a card: its address in the API, escaped, with the ending web servers know."""
        return f"{self.cards(pipeline, collection)}{shortened(quote(card_id, safe=''), FILE_BYTES_MAX)}.json"

    def cards(self, pipeline: str, collection: MirroredCollection) -> str:
        """Return what the paths of all cards of a collection begin with."""
        return f"api/v1/{pipeline}/{collection.name}/"

    def index(self, collection: MirroredCollection) -> str:
        """Return the path of an id index."""
        return f"index/{quote(collection.index_name, safe='')}.json"

    def catalog(self, pipeline: str) -> str:
        """Return the path of a catalog."""
        return f"{self.catalogs}{pipeline}.json"

    def pipelines(self, keys: set[str]) -> list[str]:
        """Return the pipelines whose catalogs are among keys."""
        inside = [key.removeprefix(self.catalogs) for key in keys if key.startswith(self.catalogs)]
        return sorted(each.removesuffix(".json") for each in inside if each.endswith(".json"))


def names_for(target: Target) -> KeyNames | PathNames:
    """Choose how things are called."""
    return PathNames() if target.has_paths else KeyNames(target.key_bytes_max)


def shortened(name: str, bytes_max: int) -> str:
    """Return a name that is too long for a target with its end replaced by a digest of the whole."""
    raw = name.encode()
    if len(raw) <= bytes_max:
        return name
    # A digest of the whole name: two long names may share their beginning.
    mark = blake2b(raw, digest_size=16).hexdigest()
    return f"{raw[: bytes_max - len(mark) - 1].decode(errors='ignore')}~{mark}"

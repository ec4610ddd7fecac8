"""Mirrors as configured: checked to fit the pipelines, and made of their parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tidings.config import MirrorSettings, Settings, variable
from tidings.follow.mirrors.addresses import SCHEMES, TargetAddress, open_target
from tidings.follow.mirrors.budget import DailyCounter, WriteBudget
from tidings.follow.mirrors.mirror import Mirror, MirrorPace
from tidings.follow.mirrors.names import MirroredPipeline, mirrored
from tidings.mirror_reader import narrowed
from tidings.model.clock import Clock
from tidings.model.errors import Misconfigured
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection
from tidings.net.client import Web
from tidings.publish.deliveries import DELIVERIES
from tidings.static_answers import StaticAnswers
from tidings.watch.logs import hide

CLOUDFLARE_WRITES = 1_000
"""What Cloudflare's free plan allows in a day."""


@dataclass(frozen=True, slots=True)
class MirrorSpec:
    """A mirror as configured."""

    name: str
    address: TargetAddress
    pipelines: tuple[MirroredPipeline, ...]
    pace: MirrorPace
    writes_per_day: int
    public_url: str = ""


def mirror_specs(settings: Settings, pipelines: Sequence[Pipeline]) -> tuple[MirrorSpec, ...]:
    """Return the mirrors; raise Misconfigured where one does not fit the pipelines that are on."""
    declared = {pipeline.name: pipeline for pipeline in pipelines}
    _check_places(settings.mirrors)
    return tuple(_spec(name, mirror, declared) for name, mirror in settings.mirrors.items())


def _check_places(mirrors: Mapping[str, MirrorSettings]) -> None:
    """Refuse two mirrors in one place: each has one writer, so the second would wait for the first without end."""
    names: dict[tuple[str, str], str] = {}
    for name, mirror in mirrors.items():
        other = names.setdefault((mirror.url.rstrip("/"), mirror.endpoint), name)
        if other != name:
            raise Misconfigured(
                f"mirrors.{name}.url: it is the place of mirrors.{other} already; give each a folder, "
                "a database number or a ?prefix= of its own"
            )


def _spec(name: str, mirror: MirrorSettings, declared: Mapping[str, Pipeline]) -> MirrorSpec:
    secret = mirror.secret.get_secret_value() if mirror.secret is not None else None
    hide(secret)
    address = TargetAddress(mirror.url, secret, mirror.access_key, mirror.region, mirror.endpoint)
    if address.scheme not in SCHEMES:
        raise Misconfigured(f"mirrors.{name}.url: begin with {', '.join(f'{each}://' for each in SCHEMES)}")
    if address.scheme == "cloudflare-kv" and not secret:
        raise Misconfigured(f"mirrors.{name}: the API token is missing; set {variable(f'mirrors.{name}.secret')}")
    limit = mirror.writes_per_day
    if limit is None:
        limit = CLOUDFLARE_WRITES if address.scheme == "cloudflare-kv" else 0
    return MirrorSpec(
        name,
        address,
        tuple(_plans(name, mirror, declared)),
        MirrorPace(mirror.card_seconds, mirror.index_seconds, mirror.newest),
        limit,
        mirror.public_url,
    )


def _plans(name: str, mirror: MirrorSettings, declared: Mapping[str, Pipeline]) -> Iterator[MirroredPipeline]:
    chosen = mirror.pipelines or list(declared)
    for each in chosen:
        if each not in declared:
            on = ", ".join(declared) or "none"
            raise Misconfigured(f"mirrors.{name}.pipelines: {each!r} is not on; on are {on}")
    offered = {each: _offered(declared[each], mirror.collections) for each in chosen}
    _check_names(name, mirror, offered)
    for each, collections in offered.items():
        if collections:
            plans = {c.name: mirrored(c, mirror.index_names.get(c.name)) for c in collections}
            yield MirroredPipeline(each, plans)


def _offered(pipeline: Pipeline, wanted: Sequence[str]) -> list[Collection]:
    if not wanted:
        return list(pipeline.collections)
    all_of_them = [*pipeline.collections, *([DELIVERIES] if pipeline.announce else [])]
    return [each for each in all_of_them if each.name in wanted]


def _check_names(name: str, mirror: MirrorSettings, offered: Mapping[str, Sequence[Collection]]) -> None:
    """Refuse names that mean nothing, and two collections whose cards or indexes would stand under the same keys."""
    known = [each.name for collections in offered.values() for each in collections]
    for setting, given in (("collections", mirror.collections), ("index_names", mirror.index_names)):
        for each in given:
            if each not in known:
                there = ", ".join(sorted(set(known))) or "none"
                raise Misconfigured(f"mirrors.{name}.{setting}: there is no collection {each!r}; there are {there}")
    singulars = [each.singular for collections in offered.values() for each in collections]
    indexes = [mirror.index_names.get(each, each) for each in known]
    if len(set(singulars)) < len(singulars) or len(set(indexes)) < len(indexes):
        raise Misconfigured(
            f"mirrors.{name}: two collections would share their keys; give each pipeline a mirror of its own, "
            "with another folder, database number, namespace or prefix"
        )
    if not known:
        raise Misconfigured(f"mirrors.{name}: there is nothing to copy; turn a pipeline on")


@asynccontextmanager
async def opened_mirror(
    spec: MirrorSpec, pipelines: Mapping[str, Pipeline], counter: DailyCounter, clock: Clock, web: Web
) -> AsyncIterator[Mirror]:
    """Open a mirror; its target is let go at the end."""
    target = open_target(spec.address, web)
    writes = WriteBudget(counter, clock, mirror=spec.name, pipeline=spec.pipelines[0].name, limit=spec.writes_per_day)
    copied = {plan.name: narrowed(pipelines[plan.name], plan.collections) for plan in spec.pipelines}
    answers = StaticAnswers(copied, spec.public_url).render if target.has_paths else None
    try:
        yield Mirror(
            f"mirror:{spec.name}", target, spec.pipelines, budget=writes, clock=clock, pace=spec.pace, answers=answers
        )
    finally:
        await target.close()

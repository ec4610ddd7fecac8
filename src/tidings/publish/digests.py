"""Digests: many notices in one message. Each notice keeps its own delivery, which joins a digest and is told with it.

Who belongs to a digest is written once, when it is sealed, and only in the digest. A notice that came too late finds
that out from the digest itself and joins the next one: so each is told exactly once, whatever crashes in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.hours import HOUR_MS, parse_quiet, parse_times, spoken_moment
from tidings.model.item import Finding, fingerprint, ref, split_ref
from tidings.model.outcome import Advance, Outcome, Postpone, Reject
from tidings.model.pipeline import Renew
from tidings.model.publication import DELIVERY, Notice, NoticeEntry
from tidings.model.workflow import Work
from tidings.publish.delivery import Delivery, DigestContent, DigestMember, has_waited_too_long, short_id
from tidings.publish.wording import one_line

MEMBERS_MAX = 500
"""What a digest carries at most; the rest joins the next one."""
ENTRIES_MAX = 60
"""How many of them it names; the rest it counts."""
ENTRY_CHARS_MAX = 200
KEPT_TEXT_CHARS = 500
LOOK_MS = 60_000
LOOK_MS_MAX = HOUR_MS
EVENTS = {"new": "New", "update": "Updates"}
"""What groups of notices are called; other events are called by their own name."""


class GatheredDelivery(NamedTuple):
    """A delivery that waits for a digest, as the store holds it."""

    key: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Accountant:
    """The processor of gathered notices: finds out what became of each from the digest it was gathered into."""

    renew: Mapping[str, Renew] = field(default_factory=dict)

    def __call__(self, work: Work) -> Outcome:
        """End as the digest did, join the next one where this one left without the notice, or go on waiting."""
        body: Delivery = work.body
        carrier: Delivery | None = work.related.get(ref(DELIVERY, body.digest_key))
        digest = carrier.digest if carrier is not None else None
        if carrier is not None and digest is not None:
            if carrier.sent_at is not None and work.key in digest.told:
                return _told_with(body, carrier)
            if work.key not in {member.key for member in digest.members}:
                return Advance(way="join_next", body=_freed(body), note="the digest left without it")
        if outdated := why_outdated(body, body.parent, body.notice, self.renew, work):
            return Reject(f"expired: {outdated}")
        return Postpone(_next_look(work.now_ms, slot_of(body.digest_key)), f"waits for {body.waits_for}")


def gathered(work: Work, open_digest: str | None, *, why: str = "") -> Advance:
    """Join the digest of the route that is still open, or begin its next one."""
    body: Delivery = work.body
    key = open_digest or f"{digest_prefix(body)}{next_slot(body, work.now_ms)}"
    at = slot_of(key)
    zone = parse_times(body.calm.digest).zone if body.calm.digest else _quiet_zone(body)
    words = f"the digest at {spoken_moment(at, zone)}{why}"
    carrier = Delivery(
        id=short_id(work.pipeline, key),
        channel=body.channel,
        parent="",
        notice=Notice(title="Digest"),
        queued_at=work.now_ms,
        queue_days=body.queue_days,
        route=body.route,
        calm=body.calm,
        digest=DigestContent(at=at),
        waits_for=f"its time, {spoken_moment(at, zone)}",
    )
    return Advance(
        way="gather",
        body=msgspec.structs.replace(body, digest_key=key, waits_for=words),
        children=(Finding(work.pipeline, DELIVERY, key, fingerprint(key), msgspec.json.encode(carrier)),),
        due_at=max(at, work.now_ms) + LOOK_MS,
        note=f"waits for {words}",
    )


def resting(work: Work) -> Advance | None:
    """Rest until the digest's time or the end of the quiet hours; None where nothing keeps the delivery."""
    body: Delivery = work.body
    until, words = 0, ""
    if body.digest is not None and body.digest.at > work.now_ms:
        until, words = body.digest.at, body.waits_for or "its time"
    elif (ends := quiet_until(body, work.now_ms)) is not None:
        until, words = ends, f"the end of the quiet hours at {spoken_moment(ends, _quiet_zone(body))}"
    if not until:
        return None
    waiting = msgspec.structs.replace(body, waits_for=words)
    return Advance(way="rest", body=waiting, due_at=until, note=f"waits for {words}")


def quiet_until(body: Delivery, now_ms: int) -> int | None:
    """Return when the quiet hours end that it is now, or None."""
    return parse_quiet(body.calm.quiet).ends_at(now_ms) if body.calm.quiet else None


def sealed(work: Work, rows: Sequence[GatheredDelivery]) -> Outcome:
    """Fix who belongs to a digest: from now on nobody joins it."""
    body: Delivery = work.body
    members = tuple(_member(row) for row in rows)[:MEMBERS_MAX]
    if body.digest is None or not members:
        return Reject("nothing was left to tell when its time came")
    digest = msgspec.structs.replace(body.digest, members=members)
    title = f"Digest of {len(members)} notice{'s' if len(members) > 1 else ''}"
    notice = msgspec.structs.replace(body.notice, title=title)
    changed = msgspec.structs.replace(body, digest=digest, notice=notice, waits_for="")
    return Advance(way="seal", body=changed, note=title)


def digest_now(work: Work, renew: Mapping[str, Renew]) -> Delivery | None:
    """Return a sealed digest with its message as it is true now; None where none of it is true any more."""
    body: Delivery = work.body
    assert body.digest is not None  # nothing else is sealed
    notices: dict[str, Notice] = {}
    for member in body.digest.members:
        if why_outdated(member, member.parent, member.notice, renew, work) is None:
            notices[member.key] = notice_now(member.parent, member.notice, renew, work) or member.notice
    expired = tuple(member.key for member in body.digest.members if member.key not in notices)
    digest = msgspec.structs.replace(body.digest, told=tuple(notices), expired=expired)
    if not notices:
        return None
    return msgspec.structs.replace(
        body, digest=digest, notice=digest_notice(list(notices.values()), len(expired), work.now_ms)
    )


def digest_notice(notices: Sequence[Notice], expired: int, now_ms: int) -> Notice:
    """Write the one message: grouped, linked, with what it leaves out."""
    groups: dict[str, list[Notice]] = {}
    for notice in notices:
        groups.setdefault(group_of(notice), []).append(notice)
    ordered = [entry_of(notice, group) for group, found in groups.items() for notice in found]
    shown, more = ordered[:ENTRIES_MAX], len(ordered) - ENTRIES_MAX
    left_out = [f"{more} more are not listed."] if more > 0 else []
    left_out += [f"{expired} left out: what {'it' if expired == 1 else 'they'} said is no longer true."] * bool(expired)
    counts = ", ".join(f"{len(found)} {group.lower()}" for group, found in groups.items())
    return Notice(
        title=f"Digest: {counts}",
        text="\n\n".join([*_plain_groups(shown), *left_out]),
        time=rfc3339(now_ms),
        attributes={"event": "digest"},
        entries=tuple(shown),
        closing=" ".join(left_out),
    )


def group_of(notice: Notice) -> str:
    """Return what the notices are called among which a digest lists one."""
    told = notice.attributes.get("event") or ""
    event = str(told[0] if isinstance(told, list) else told)
    return EVENTS.get(event, event.replace("-", " ").capitalize() or "Notices")


def entry_of(notice: Notice, group: str) -> NoticeEntry:
    """Tell of a notice in a line: what changed or, where it is new, the next date it names."""
    if notice.changes:
        return NoticeEntry(
            title=notice.title, url=notice.url, text=one_line(notice.changes, ENTRY_CHARS_MAX), group=group
        )
    dated = next((each for each in notice.fields if each.time), None)
    text = f"{dated.name}: {dated.value}" if dated is not None else ""
    return NoticeEntry(
        title=notice.title,
        url=notice.url,
        text=one_line(text, ENTRY_CHARS_MAX),
        time=dated.time if dated is not None else None,
        group=group,
    )


def why_outdated(
    waiting: Delivery | DigestMember, parent: str, queued: Notice, renew: Mapping[str, Renew], work: Work
) -> str | None:
    """Say why a notice is no news any more; None where it is."""
    if has_waited_too_long(waiting, work.now_ms):
        return f"it waited longer than {waiting.queue_days:g} days (queue_days of its route)"
    return None if notice_now(parent, queued, renew, work) else "what it says is no longer true"


def notice_now(parent: str, queued: Notice, renew: Mapping[str, Renew], work: Work) -> Notice | None:
    """Return a notice as it is true now. An item that cannot be read any more leaves it as it was queued."""
    kind, _ = split_ref(parent)
    about, writes = work.related.get(parent), renew.get(kind)
    return writes(about, queued, work.now_ms) if writes is not None and about is not None else queued


def digest_prefix(body: Delivery) -> str:
    """Return what the keys of all digests of a route begin with."""
    # No kind has a colon in its name: no notice's own delivery has such a key.
    return f"{body.channel}/digest:{body.route}/"


def slot_of(key: str) -> int:
    """Return the time that a digest's key names."""
    return int(key.rpartition("/")[2])


def next_slot(body: Delivery, now_ms: int) -> int:
    """Return when the next digest of a route goes out; of what is only too much for an hour, with the next hour."""
    return parse_times(body.calm.digest).next_after(now_ms) if body.calm.digest else now_ms - now_ms % HOUR_MS + HOUR_MS


def _member(row: GatheredDelivery) -> DigestMember:
    body = msgspec.json.decode(row.body, type=Delivery)
    notice = body.notice
    short = msgspec.structs.replace(
        notice, text=notice.text[:KEPT_TEXT_CHARS], summary=notice.summary[:KEPT_TEXT_CHARS]
    )
    return DigestMember(row.key, body.parent, short, body.queued_at, body.queue_days)


def _told_with(body: Delivery, carrier: Delivery) -> Advance:
    answer = f"told in the digest {carrier.id}"
    proof: dict[str, Any] = {"message_id": carrier.message_id, "sent_at": carrier.sent_at, "answer": answer}
    return Advance(body=msgspec.structs.replace(body, waits_for="", **proof), note=answer)


def _freed(body: Delivery) -> Delivery:
    return msgspec.structs.replace(body, digest_key="", waits_for="")


def _next_look(now_ms: int, at: int) -> int:
    """Look soon after the digest's time, then ever more rarely: its channel may be paused."""
    if now_ms < at:
        return at + LOOK_MS
    return now_ms + min(max(LOOK_MS, (now_ms - at) // 2), LOOK_MS_MAX)


def _quiet_zone(body: Delivery) -> Any:
    return parse_quiet(body.calm.quiet).zone if body.calm.quiet else None


def _plain_groups(entries: Iterable[NoticeEntry]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for entry in entries:
        parts = [f"{entry.title} ({entry.text})" if entry.text else entry.title, entry.url or ""]
        groups.setdefault(entry.group, []).append("- " + "\n  ".join(filter(None, parts)))
    return [f"{group}\n" + "\n".join(lines) for group, lines in groups.items()]

"""Users of Hacker News: read when someone asks for one, and again when `updates` names one that is shown."""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.model.clock import day_of, rfc3339
from tidings.model.errors import BadInput
from tidings.model.item import Finding, fingerprint
from tidings.model.outcome import Advance, Outcome
from tidings.model.publication import Collection, Presentation, Retention
from tidings.model.workflow import Transition, Work, Workflow
from tidings.net.sanitizer import safe_html
from tidings.pipelines.hacker_news.body import PIPELINE, Whole
from tidings.pipelines.hacker_news.cards import moment

USER = "user"
COLLECTION = "users"
NAME = r"[A-Za-z0-9_-]{1,32}"
ABOUT_MAX = 50_000
YEAR_10000 = 253_402_300_800


class GivenUser(msgspec.Struct, frozen=True):
    """A profile as the API gives it."""

    id: str
    created: Whole | None = None
    karma: Whole | None = None
    about: str | None = None
    submitted: tuple[Whole, ...] = ()


class UserBody(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A profile as we keep it."""

    id: str
    created: Whole | None = None
    karma: Whole | None = None
    about: str | None = None
    submissions: int = 0
    read_at: int = 0


class UserCard(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What readers see of a user: the field names of the Firebase API; `about` is safe HTML."""

    id: str
    karma: int | None = None
    created: int | None = None
    """Unix seconds, as the Firebase API has it."""
    created_at: str | None = None
    about: str | None = None
    submissions: int = 0
    """How many items the API names as theirs."""
    read_at: str | None = None


def finding_of_user(name: str, value: Any, now_ms: int) -> Finding:
    """Make a finding of an answer, or raise BadInput; a profile that stays the same is still renewed once a day."""
    try:
        given = msgspec.convert(value, GivenUser, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(f"user {name}: {error}") from None
    if given.id != name:
        raise BadInput(f"user {name}: the answer is another one")
    about = given.about[:ABOUT_MAX] if given.about else None
    created = given.created if given.created is not None and 0 <= given.created < YEAR_10000 else None
    facts = (given.id, created, given.karma, about, len(given.submitted))
    body = UserBody(
        id=name, created=created, karma=given.karma, about=about, submissions=len(given.submitted), read_at=now_ms
    )
    return Finding(PIPELINE, USER, name, fingerprint(*facts, day_of(now_ms)), msgspec.json.encode(body))


def clean(work: Work) -> Outcome:
    """Make the text that a stranger wrote about themselves harmless."""
    body: UserBody = work.body
    about = safe_html(body.about) if body.about else None
    return Advance(body=msgspec.structs.replace(body, about=about))


def present_user(key: str, body: UserBody) -> Presentation:
    """Show a profile; the search finds what users wrote, not themselves."""
    card = UserCard(
        id=body.id,
        karma=body.karma,
        created=body.created,
        created_at=None if body.created is None else moment(body.created),
        about=body.about,
        submissions=body.submissions,
        read_at=rfc3339(body.read_at),
    )
    return Presentation(COLLECTION, key, card, body.read_at)


def user_workflow() -> Workflow:
    """Declare a profile's life."""
    return Workflow(
        kind=USER,
        start="found",
        states=("found", "published"),
        transitions=(Transition("publish", "found", "published", clean, publishes=True),),
        terminal=frozenset({"published"}),
        body=UserBody,
    )


RETENTION = Retention(USER, newest=10_000, forget_days=1)
USERS = Collection(
    name=COLLECTION,
    singular="user",
    kind=USER,
    card=UserCard,
    title="Users",
    templates=__package__,
    html_fields=("about",),
    is_front=lambda _card: False,
    is_searched=False,
    wishable=NAME,
    members_query="by:{id}",
    title_field="id",
    summary_field="about",
    time_field="created_at",
    example=UserCard(
        id="tarnwick",
        karma=287,
        created=1500000000,
        created_at="2017-07-14T02:40:00Z",
        about="I keep one loop running.",
        submissions=31,
        read_at="2026-09-21T14:13:20.000Z",
    ),
)

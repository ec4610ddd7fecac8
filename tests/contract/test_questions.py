"""Sixty questions as people ask them of Hacker News: from the log to the answer, on both databases."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from tests.support.followed_search import FollowedSearch
from tests.support.questions import CASES, CORPUS
from tests.support.store import Ground

from tidings.follow.search.entry import SearchEntry
from tidings.model.item import Finding, Link, fingerprint, ref
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection, Document, Presentation
from tidings.model.query import parse
from tidings.model.vocabulary import vocabulary_of
from tidings.model.workflow import Transition, Work, Workflow

KIND = "item"


class Post(msgspec.Struct, frozen=True):
    document: Document
    parent: str | None


class PostCard(msgspec.Struct, frozen=True):
    id: str


def hang(work: Work) -> Outcome:
    parent = work.body.parent
    return Advance(links=(Link(ref(KIND, work.key), ref(KIND, parent), "below"),) if parent else ())


def present(key: str, body: Post) -> Presentation:
    return Presentation("posts", key, PostCard(key), body.document.time_ms, lambda: body.document)


def forum() -> Pipeline:
    publish = Transition("publish", "found", "published", processor=hang, publishes=True)
    workflow = Workflow(KIND, "found", ("found", "published"), (publish,), frozenset({"published"}), body=Post)
    attributes: dict[str, tuple[str, ...]] = {"comments": (), "topic": ()}
    posts = Collection("posts", "post", KIND, PostCard, "Posts", attributes=attributes, relation="below")
    return Pipeline("forum", "Forum", "", {KIND: workflow}, collections=(posts,), presenters={KIND: present})


def found_of(entry: SearchEntry) -> Finding:
    post = msgspec.json.encode(Post(entry.document, entry.thread[-1] if entry.thread else None))
    return Finding("forum", KIND, entry.key, fingerprint({"post": post.decode()}), post)


def test_sixty_questions_have_the_same_answers_on_both_databases(open_ground: Callable[..., Ground]) -> None:
    ground = open_ground(forum())
    ground.record(*map(found_of, CORPUS))
    ground.work()
    search = FollowedSearch(ground.store, ground.pipelines, ground.now_ms)
    vocabulary = vocabulary_of(ground.pipelines.values())

    answers = {
        case.text: {
            int(hit.key) for hit in search.search(parse(case.text, vocabulary, now_ms=ground.now_ms()).root).hits
        }
        for case in CASES
    }

    assert len(answers) >= 60
    assert answers == {case.text: case.found for case in CASES}

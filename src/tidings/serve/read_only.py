"""The server of collections, cards, counts, feeds and health alone: for a process that can only read a shelf."""

from __future__ import annotations

from dataclasses import replace

from starlette.types import Scope

from tidings.serve.api.card_search import CardSearch
from tidings.serve.api.collections import Collections
from tidings.serve.api.feeds import FeedRoutes
from tidings.serve.backend import ReadBackend
from tidings.serve.http.access import Access, Caller
from tidings.serve.http.health import Health
from tidings.serve.http.hot_answers import HotAnswers
from tidings.serve.http.openapi import OpenApi
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply, refusal
from tidings.serve.http.server import Application


def build_reader(backend: ReadBackend, *, is_public: bool = False) -> Application:
    """Put the read-only server together; where it is public, reading needs no token."""
    collections = Collections(backend)
    machines = [
        *Health(backend).operations(),
        *FeedRoutes(backend, collections, CardSearch(backend)).operations(),
        *collections.operations(),
    ]
    operations = [*machines, *OpenApi(backend, machines).operations()]
    if is_public:
        operations = [replace(each, scope="public") for each in operations]
    return Application(backend, Access(backend), collections.hot, (), operations, _show_problem)


def build_health(backend: ReadBackend) -> Application:
    """Put together what tells health and metrics alone, for a process that serves nothing else."""
    hot = HotAnswers(backend.executor, backend.shelf, [])
    return Application(backend, Access(backend), hot, (), Health(backend).operations(), _show_problem)


def _show_problem(_scope: Scope, problem: Problem, _caller: Caller) -> Reply:
    return refusal(problem)

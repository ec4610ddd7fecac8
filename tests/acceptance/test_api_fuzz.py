"""The API, asked everything its own description allows and much that it does not."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.support.postgres import new_postgres_database
from tests.support.sample_server import Served
from tests.unit.serve.asgi import Client

from tidings.backends import backend_of
from tidings.config import Server
from tidings.serve.application import build
from tidings.serve.http.access import RANKS

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
HOST = "tidings.example"


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def served(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("served")
    url = new_postgres_database(request.getfixturevalue("postgres_server")) if request.param == "postgres" else None
    with Served(folder, database_url=url) as served:
        yield served


@pytest.mark.parametrize("examples", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_no_request_breaks_the_server_or_gets_an_undocumented_answer(served: Served, examples: int) -> None:
    # The stream of events has no end; it has tests of its own.
    described = schemathesis.openapi.from_url(f"{served.url}/openapi.json").exclude(path="/api/v1/events")
    headers = {"Authorization": f"Bearer {served.app.store.tokens.create(f'fuzz {examples}', 'operate')}"}
    asked = 0
    found: list[str] = []
    statuses: dict[str, Counter[int]] = {}
    operations = [result.ok() for result in described.get_all_operations() if isinstance(result, Ok)]
    assert len(operations) > 40
    for operation, mode in itertools.product(operations, (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)):

        @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Case) -> None:
            nonlocal asked
            asked += 1
            answer = case.call(headers=headers, timeout=30)
            statuses.setdefault(case.operation.label, Counter())[answer.status_code] += 1
            case.validate_response(answer, checks=CHECKS)

        try:
            ask()
        except Unsatisfiable:
            continue  # nothing about this operation can be wrong
        except BaseExceptionGroup as error:
            found.append(f"{operation.label}: {error}")
    assert not found, "\n\n".join(found)
    assert asked > 40 * examples
    # Whoever holds a token gets past the door: it is what lies behind it that is asked here.
    refused = {label: counts for label, counts in statuses.items() if {401, 403} & counts.keys()}
    assert refused == {}


def test_every_scoped_operation_of_the_document_refuses_nobody_and_lesser_scopes(served: Served) -> None:
    tokens = {scope: served.app.store.tokens.create(scope, scope) for scope in ("read", "ingest", "operate")}
    server = Server(hosts=[HOST]).model_dump()
    app = build(backend_of(served.app, server, loopback=False))

    async def ask() -> tuple[dict[str, int], int]:
        nobody = Client(app, host=HOST)
        document = (await Client(app, host=HOST, token=tokens["read"]).get("/openapi.json")).json
        wrong: dict[str, int] = {}
        asked = 0
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                scope = operation["x-tidings-scope"]
                if scope == "public":
                    continue
                address = re.sub(r"\{\w+\}", "1", path)
                refusals = [(401, nobody)] + [
                    (403, Client(app, host=HOST, token=token))
                    for held, token in tokens.items()
                    if RANKS[held] < RANKS[scope]
                ]
                for expected, client in refusals:
                    answer = await client.send(method.upper(), address)
                    asked += 1
                    if answer.status != expected:
                        wrong[f"{method} {path}"] = answer.status
        return wrong, asked

    wrong, asked = served.call(ask)
    assert wrong == {}
    assert asked > 50

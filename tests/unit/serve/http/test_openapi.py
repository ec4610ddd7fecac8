from __future__ import annotations

from openapi_spec_validator import validate
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World

from tidings.serve.application import build
from tidings.serve.http.server import Application


async def test_the_document_is_valid_openapi(client: Client):
    answer = await client.get("/openapi.json")

    assert answer.json["openapi"] == "3.1.0"
    validate(answer.json)


async def test_every_api_operation_is_described_with_its_scope(client: Client, world: World):
    document = (await client.get("/openapi.json")).json
    app = build(world.backend())
    assert isinstance(app, Application)

    described = {(m.upper(), p) for p, each in document["paths"].items() for m in each}
    for operation in app.operations:
        if operation.path.startswith("/api/") and "greader" not in operation.path:
            assert (operation.method, operation.path.replace(":path", "")) in described
    for path, each in document["paths"].items():
        for method, operation in each.items():
            assert operation["summary"], path
            assert bool(operation["security"]) == (operation["x-tidings-scope"] != "public")
            if method == "post":
                assert {"401", "403"} <= set(operation["responses"])


async def test_cards_views_and_problems_have_schemas(client: Client):
    document = (await client.get("/openapi.json")).json
    schemas = document["components"]["schemas"]

    assert schemas["Article"]["properties"]["sentiment"]
    assert schemas["ItemRow"]["properties"]["created_at"] == {"type": "string", "format": "date-time"}
    assert schemas["ItemRow"]["properties"]["id"]["type"] == "string"
    assert schemas["SourceView"]["properties"]["last_success_at"]["anyOf"][0]["format"] == "date-time"
    listing = document["paths"]["/api/v1/bitcoin_news/articles"]["get"]
    shape = listing["responses"]["200"]["content"]["application/json"]["schema"]
    assert shape["properties"]["articles"]["items"] == {"$ref": "#/components/schemas/Article"}
    assert shape["properties"]["sentiment_counts"]["properties"]["positive"] == {"type": "integer"}
    assert listing["responses"]["200"]["content"]["application/json"]["example"]["articles"][0]["id"] == "a1"
    problem = listing["responses"]["503"]["content"]["application/problem+json"]
    assert problem["schema"] == {"$ref": "#/components/schemas/Problem"}


async def test_the_documentation_page_names_every_operation(client: Client):
    document = (await client.get("/openapi.json")).json
    page = (await client.get("/docs")).text

    for path in document["paths"]:
        assert path in page
    assert "//" not in page.split("<script")[1].split(">")[0]

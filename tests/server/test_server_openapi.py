"""The OpenAPI document says what the API does."""

from __future__ import annotations

import re

import pytest

from trainmark.server.access.tokens import Role
from trainmark.server.api.openapi import document, routes


def test_every_route_of_the_api_is_in_the_document():
    served = {route.path for route in routes() if route.path.startswith("/api/v1/")}
    assert set(document()["paths"]) == served - {"/api/v1/openapi.json"}


def test_every_reference_leads_to_a_schema():
    names = re.findall(r"#/components/schemas/(\w+)", str(document()))
    assert names and set(names) <= document()["components"]["schemas"].keys()


@pytest.mark.parametrize(
    ("path", "schema"), [("/cases", "CaseRow"), ("/runs", "RunRow"), ("/machines", "MachineRow")]
)
def test_what_is_answered_has_the_fields_that_the_document_promises(sqlite_server, make_pack, path, schema):
    sqlite_server.push(make_pack(name="promised", host="promised"), sqlite_server.tokens[Role.PUSH])
    answer = sqlite_server.request(f"/api/v1{path}", sqlite_server.tokens[Role.READ]).json
    assert answer[0].keys() == document()["components"]["schemas"][schema]["properties"].keys()


def test_a_history_has_the_fields_that_the_document_promises(sqlite_server, make_pack):
    sqlite_server.push(make_pack(name="promised", host="promised"), sqlite_server.tokens[Role.PUSH])
    reader, schemas = sqlite_server.tokens[Role.READ], document()["components"]["schemas"]
    number = sqlite_server.request("/api/v1/cases", reader).json[0]["id"]
    history = sqlite_server.request(f"/api/v1/cases/{number}/history", reader).json
    assert history.keys() == schemas["History"]["properties"].keys()
    assert history["points"][0].keys() == schemas["HistoryPoint"]["properties"].keys()

"""The arguments of a request's query."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from starlette.requests import Request

from pykbroker.client.errors import BadInput
from pykbroker.console.endpoint import Arguments
from pykbroker.console.given import MOST_OF_QUERY, arguments_of


def given(query: str) -> Arguments:
    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "query_string": query.encode(), "path_params": {}, "headers": []}
    return trio.run(arguments_of, Request(scope, receive), 1000)


def test_a_name_that_is_given_twice_is_a_list() -> None:
    found = given("a=1&b=x&a=2&c=")
    assert found.texts("a") == ["1", "2"]
    assert found.text("b") == "x"
    assert found.text("c") == ""


def test_a_query_has_a_bound() -> None:
    assert given("&".join(f"{each}=" for each in range(MOST_OF_QUERY))).has("0")
    with pytest.raises(BadInput, match=f"{MOST_OF_QUERY} values at most"):
        given("&".join(f"{each}=" for each in range(MOST_OF_QUERY + 1)))

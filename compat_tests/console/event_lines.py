"""The events of a stream of the console's, as a program reads them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from .console_broker import ConsoleBroker

PATIENCE_S = 60
Event = tuple[str, Any]


@contextmanager
def events_of(console: ConsoleBroker, path: str, headers: Mapping[str, str] | None = None) -> Iterator[Iterator[Event]]:
    """The events of a stream of a topic's, up to its end; the connection is closed at the end of the block."""
    with closing(http.client.HTTPConnection(console.url.removeprefix("http://"), timeout=PATIENCE_S)) as connection:
        connection.request("GET", f"/api/topics/{path}", headers=dict(headers or {}))
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        yield _events(answer)


def _events(answer: http.client.HTTPResponse) -> Iterator[Event]:
    event = ""
    for line in answer:
        text = line.decode().rstrip("\n")
        if text.startswith("event: "):
            event = text.removeprefix("event: ")
        elif text.startswith("data: "):
            yield event, json.loads(text.removeprefix("data: "))
            if event in ("end", "failure"):
                return

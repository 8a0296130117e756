"""A request that was recorded, as tests and people see it: with plain values, decoded when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from pykbroker.control.one_line import one_line
from pykbroker.control.topic_fields import LISTS_OF_TOPICS, RESOURCES, TOPIC_NAMES, TOPIC_RESOURCE

from .decoding import ACKNOWLEDGE_ERROR, ERROR, Names, body_values, head_values
from .exchange import Exchange

_NO_ERROR: Final = "NONE"
_SHOWN_TOPICS: Final = 3


class RecordedRequest:
    """One request with its response. values: a line of a journal, or its head. bodies: gives the rest, with records or
    without.
    """

    def __init__(self, values: Mapping[str, Any], bodies: Callable[[bool], Mapping[str, Any]] | None = None) -> None:
        self._head = values
        self._bodies = bodies

    @classmethod
    def of(cls, exchange: Exchange, names: Names) -> RecordedRequest:
        return cls(head_values(exchange), lambda records: body_values(exchange, names, with_records=records))

    @property
    def number(self) -> int:
        """The number that no other entry of the journal has; later ones have higher numbers."""
        return int(self._head["number"])

    @property
    def node(self) -> int:
        """The id of the broker."""
        return int(self._head["node"])

    @property
    def api(self) -> str:
        return str(self._head["api"])

    @property
    def version(self) -> int:
        return int(self._head["version"])

    @property
    def client_id(self) -> str | None:
        return self._head.get("client_id")

    @property
    def principal(self) -> str:
        return str(self._head["principal"])

    @property
    def connection(self) -> int:
        """The number of the client's connection."""
        return int(self._head["connection"])

    @property
    def correlation_id(self) -> int:
        return int(self._head["correlation_id"])

    @property
    def received(self) -> datetime:
        """The time at which the broker had the whole request, in local time."""
        return datetime.fromtimestamp(self._head["received_ms"] / 1000).astimezone()

    @property
    def outcome(self) -> str:
        """`answered`, `no answer` (acks=0), `closed`, or `waiting`, as it was when the journal was asked."""
        return str(self._head["outcome"])

    @property
    def reason(self) -> str:
        """The reason why the connection was closed, where it was."""
        return str(self._head.get("reason", ""))

    @property
    def took_ms(self) -> float | None:
        """The time from the whole request to the answer; None while it waits."""
        return self._head.get("took_ms")

    @property
    def caused_by(self) -> int | None:
        """The number of the request whose handling ended the wait of this one."""
        return self._head.get("caused_by")

    @property
    def interference(self) -> list[str]:
        """The faults that control has put in its way."""
        return list(self._head.get("interference", ()))

    @property
    def request(self) -> dict[str, Any]:
        """The request's fields, with Kafka's names as Python spells them."""
        values: dict[str, Any] = self.as_json["request"]
        return values

    @property
    def response(self) -> dict[str, Any] | None:
        """The response's fields; None where there is none (yet)."""
        return self.as_json.get("response")

    @property
    def has_response(self) -> bool:
        """Tell whether it has a response by now."""
        return self._outline.get("response") is not None

    @cached_property
    def errors(self) -> set[str]:
        """The names of all error codes in the response, without NONE."""
        return set(_errors(self._outline.get("response"))) - {_NO_ERROR}

    @cached_property
    def topics(self) -> set[str]:
        """The names of the topics in the request and in the response."""
        return set(_topics(self._outline["request"])) | set(_topics(self._outline.get("response")))

    @cached_property
    def as_json(self) -> dict[str, Any]:
        """All of it, as a line of the journal has it."""
        return dict(self._head) | (dict(self._bodies(True)) if self._bodies is not None else {})

    @cached_property
    def _outline(self) -> Mapping[str, Any]:
        """Request and response, the records left out."""
        return self._head if self._bodies is None else self._bodies(False)

    def __str__(self) -> str:
        """One line for people."""
        topics = sorted(self.topics)
        shown = ", ".join(topics[:_SHOWN_TOPICS]) + (f" and {len(topics) - _SHOWN_TOPICS} more" if topics[3:] else "")
        took = "" if self.took_ms is None else f" in {self.took_ms:.1f} ms"
        words = [
            f"#{self.number}",
            f"{self.received:%H:%M:%S.%f}"[:-3],
            f"{self.api} v{self.version}",
            f"of {self.client_id}" if self.client_id else "",
            f"on {shown}" if shown else "",
            f"{self.outcome}{took}",
            f"({self.reason})" if self.reason else "",
            f"because of #{self.caused_by}" if self.caused_by else "",
            *(f"[{each}]" for each in self.interference),
            " ".join(sorted(self.errors)),
        ]
        return one_line(" ".join(filter(None, words)))

    def __repr__(self) -> str:
        return f"<{self}>"


def event_line(values: Mapping[str, Any]) -> str:
    """One line for people about an event. values: a line of a journal."""
    at = datetime.fromtimestamp(values["at_ms"] / 1000).astimezone()
    cause = f" because of #{values['caused_by']}" if values.get("caused_by") else ""
    return one_line(f"#{values['number']} {at:%H:%M:%S.%f}"[:-3] + f" {values['whose']}: {values['text']}{cause}")


def _errors(values: Any) -> Iterator[str]:
    if isinstance(values, dict):
        for name, value in values.items():
            if name in (ERROR, ACKNOWLEDGE_ERROR) and isinstance(value, str):
                yield value
            else:
                yield from _errors(value)
    elif isinstance(values, list):
        for each in values:
            yield from _errors(each)


def _topics(values: Any, container: str = "") -> Iterator[str]:
    """The names of topics, wherever requests and responses have them."""
    if isinstance(values, dict):
        for name, value in values.items():
            is_topic = name in TOPIC_NAMES or (name == "name" and container in LISTS_OF_TOPICS)
            is_topic |= name in RESOURCES and values.get(RESOURCES[name]) == TOPIC_RESOURCE
            if isinstance(value, str):
                if is_topic and value:
                    yield value
            elif name != "records":
                yield from _topics(value, name)
    elif isinstance(values, list):
        for each in values:
            if isinstance(each, str):
                if container in LISTS_OF_TOPICS:
                    yield each
            else:
                yield from _topics(each, container)

"""Questions to a journal: which exchanges there were, for the assertions of tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from pykbroker.protocol.api_keys import ApiKey, api_name

from .decoding import exchange_values, request_values, response_values
from .exchange import Exchange, Outcome
from .values import contains


class UnknownApi(ValueError):
    """There is no API of that name; the message says which one may be meant."""


def api_key_of(name: str) -> int:
    """Return the key of an API, by its name as Kafka has it (`Produce`), in any case. Raises UnknownApi."""
    known = {api_name(key).lower(): int(key) for key in ApiKey}
    wanted = name.lower().replace("_", "").replace("-", "")
    if wanted in known:
        return known[wanted]
    close = get_close_matches(wanted, known, n=1)
    hint = f"did you mean {api_name(known[close[0]])}?" if close else "such as Produce, Fetch or JoinGroup"
    raise UnknownApi(f"there is no API '{name}'; {hint}")


class RecordedRequest:
    """One exchange as tests see it: decoded when it is asked for."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    @property
    def number(self) -> int:
        return self._exchange.number

    @property
    def api(self) -> str:
        return self._exchange.api

    @property
    def version(self) -> int:
        return self._exchange.api_version

    @property
    def client_id(self) -> str | None:
        return self._exchange.client_id

    @property
    def outcome(self) -> Outcome:
        return self._exchange.outcome

    @property
    def reason(self) -> str:
        """Why the connection was closed, where it was."""
        return self._exchange.reason

    @property
    def took_ms(self) -> float | None:
        return self._exchange.took_ms

    @property
    def request(self) -> dict[str, Any]:
        """The request's fields, with Kafka's names as Python spells them."""
        return request_values(self._exchange)

    @property
    def response(self) -> dict[str, Any] | None:
        """The response's fields; None where there is none (yet)."""
        return response_values(self._exchange)

    @property
    def errors(self) -> set[str]:
        """The names of all error codes in the response, without NONE."""
        return set(_errors(self.response)) - {"NONE"}

    def __repr__(self) -> str:
        errors = "".join(f" {error}" for error in sorted(self.errors))
        return f"<{self.api} v{self.version} #{self.number} of {self.client_id}: {self.outcome}{errors}>"

    def as_json(self) -> dict[str, Any]:
        return exchange_values(self._exchange)


def select(
    exchanges: Iterable[Exchange],
    *,
    api: str | None = None,
    client_id: str | None = None,
    topic: str | None = None,
    error: str | None = None,
) -> list[RecordedRequest]:
    """Return the exchanges that fit all that is given. Raises UnknownApi.

    topic: the request or the response names it. error: one of the response's error codes has this name.
    """
    key = None if api is None else api_key_of(api)
    found = []
    for exchange in exchanges:
        if key not in (None, exchange.api_key) or client_id not in (None, exchange.client_id):
            continue
        request = RecordedRequest(exchange)
        if topic is not None and not (contains(request.request, topic) or contains(request.response, topic)):
            continue
        if error is not None and error not in request.errors:
            continue
        found.append(request)
    return found


def _errors(values: Any) -> Iterator[str]:
    if isinstance(values, dict):
        for name, value in values.items():
            if name == "error":
                yield value
            else:
                yield from _errors(value)
    elif isinstance(values, list):
        for each in values:
            yield from _errors(each)

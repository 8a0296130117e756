"""Requests by API: how many, how large, how long they took, and which errors their answers had (`RequestMetrics`).

The time of a request begins when its frame is whole and ends when the peer has taken the answer. Kafka's request and
response queues have no counterpart: one loop reads, handles and answers. What a Produce waits for replicas, and a Fetch
for records, is its remote time; what else passes before the answer is its local time.

Errors are counted by what an answer says, in its first entries: an answer of thousands is not gone through for that.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.schema import Message, Struct

from ..runtime.histogram import Histogram

_MOST_ENTRIES: Final = 100
"""Entries of an answer whose errors are counted."""
_WAITING: Final = frozenset((int(ApiKey.PRODUCE), int(ApiKey.FETCH)))


class ApiMetrics:
    """The requests of one API. versions: how many there were of each. errors: how often an answer said which code."""

    __slots__ = ("errors", "local", "remote", "request_bytes", "send", "total", "versions")

    def __init__(self) -> None:
        self.versions: dict[int, int] = {}
        self.errors: dict[int, int] = {}
        self.request_bytes = 0
        self.total = Histogram()
        self.local = Histogram()
        self.remote = Histogram()
        self.send = Histogram()


class RequestMetrics:
    """The requests of a node, by the number of their API."""

    __slots__ = ("by_api",)

    def __init__(self) -> None:
        self.by_api: dict[int, ApiMetrics] = {}

    def of(self, api_key: int) -> ApiMetrics:
        found = self.by_api.get(api_key)
        if found is None:
            found = self.by_api[api_key] = ApiMetrics()
        return found

    def answered(
        self, api_key: int, version: int, size_bytes: int, handled_ns: int, waited_ns: int, sent_ns: int
    ) -> None:
        """Count a request. handled_ns: until its answer was there, of which it waited for waited_ns."""
        api = self.by_api.get(api_key) or self.of(api_key)
        versions = api.versions
        versions[version] = versions.get(version, 0) + 1
        api.request_bytes += size_bytes
        api.total.record(handled_ns + sent_ns)
        api.local.record(handled_ns - waited_ns)
        if api_key in _WAITING:
            api.remote.record(waited_ns)
        api.send.record(sent_ns)

    def note_errors(self, api_key: int, response: Message) -> None:
        """Count what the answer says of errors."""
        place = _place_of_errors(type(response))
        if place is not None:
            codes: list[int] = []
            _collect(response, place, codes)
            if codes:
                self._add(api_key, codes)

    def note_error(self, api_key: int, code: int) -> None:
        """Count an error of an answer that carries nothing else."""
        self._add(api_key, [code])

    def _add(self, api_key: int, codes: list[int]) -> None:
        errors = self.of(api_key).errors
        for code in codes:
            errors[code] = errors.get(code, 0) + 1


class _Place(NamedTuple):
    """The place of error codes in a struct: its own field, and entries of these fields."""

    is_own: bool
    fields: tuple[tuple[str, _Place], ...]


@cache
def _place_of_errors(struct: type[Struct]) -> _Place | None:
    is_own, fields = False, []
    for each in struct.__schema__.fields:
        if each.name == "error_code":
            is_own = True
        elif each.is_array and each.element == "struct":
            place = _place_of_errors(each.struct)
            if place is not None:
                fields.append((each.name, place))
    return _Place(is_own, tuple(fields)) if is_own or fields else None


def _collect(struct: object, place: _Place, codes: list[int]) -> None:
    if place.is_own and (code := struct.error_code):  # type: ignore[attr-defined]
        codes.append(int(code))
    for name, inner in place.fields:
        entries = getattr(struct, name)
        if type(entries) is list:  # not those that are encoded already
            for entry in entries if len(entries) <= _MOST_ENTRIES else entries[:_MOST_ENTRIES]:
                _collect(entry, inner, codes)

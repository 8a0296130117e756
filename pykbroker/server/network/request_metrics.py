"""Requests by API: how many, how large, how long they took, and which errors their answers had (`RequestMetrics`).

The time of a request begins when its frame is whole and ends when the peer has taken the answer. One loop reads,
handles and answers, so that most requests wait in no queue:

- A large request waits until there is room to unpack it. Kafka's name for that is the request queue.
- A Produce waits for replicas and a Fetch for records: the remote time.
- What else passes before the answer is the local time.
- A large answer goes out in pieces, with a turn of others in between: those waits are the response queue.
- The rest, until the peer has taken the answer, is the send time.
- Behind it a client beyond its quota is muted: the throttle time, which is no part of the whole.

A part that is shorter than the shortest bucket is added up and not counted, as nearly all are: `Histogram.among` knows
how many there were.

Errors are counted by what an answer says, in its first entries: an answer of thousands is not gone through for that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from pykbroker.protocol.schema import Message, Struct

from ..runtime.histogram import SHORTEST_NS, Histogram

_MOST_ENTRIES: Final = 100
"""Entries of an answer whose errors are counted."""
_LAST_VERSION: Final = 50
"""Clients may ask ApiVersions in any version, which must not be one counter each; Kafka's APIs have 20."""
UNKNOWN_VERSION: Final = -1


class ApiMetrics:
    """The requests of one API. versions: how many there were of each. errors: how often an answer said which code.

    request_queue, local, remote, response_queue, send: the parts of `total`, and throttle behind it; the short ones are
    counted in `total` alone.
    """

    __slots__ = (
        "errors",
        "local",
        "remote",
        "request_bytes",
        "request_queue",
        "response_queue",
        "send",
        "throttle",
        "total",
        "versions",
    )

    def __init__(self) -> None:
        self.versions: dict[int, int] = {}
        self.errors: dict[int, int] = {}
        self.request_bytes = 0
        self.total = Histogram()
        self.request_queue, self.local, self.remote = Histogram(), Histogram(), Histogram()
        self.response_queue, self.send, self.throttle = Histogram(), Histogram(), Histogram()


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
        self,
        api_key: int,
        version: int,
        size_bytes: int,
        handled_ns: int,
        sent_ns: int,
        *,
        queued_ns: int = 0,
        waited_ns: int = 0,
        held_ns: int = 0,
        throttle_ms: int = 0,
    ) -> None:
        """Count a request. handled_ns: until its answer was there, of which it was queued and waited.

        sent_ns: from then on, of which the answer was held back for others. throttle_ms: comes behind it.
        """
        api = self.by_api.get(api_key) or self.of(api_key)
        try:
            api.versions[version] += 1
        except KeyError:
            of = version if 0 <= version <= _LAST_VERSION else UNKNOWN_VERSION
            api.versions[of] = api.versions.get(of, 0) + 1
        api.request_bytes += size_bytes
        api.total.record(handled_ns + sent_ns)
        if queued_ns:
            api.request_queue.record(queued_ns)
        if waited_ns:
            api.remote.record(waited_ns)
        if held_ns:
            api.response_queue.record(held_ns)
            sent_ns -= held_ns
        if throttle_ms:
            api.throttle.record(throttle_ms * 1_000_000)
        local_ns = handled_ns - waited_ns - queued_ns
        if local_ns < SHORTEST_NS:
            api.local.sum_ns += local_ns
        else:
            api.local.record(local_ns)
        if sent_ns < SHORTEST_NS:
            api.send.sum_ns += sent_ns
        else:
            api.send.record(sent_ns)

    def note_errors(self, api_key: int, response: Message) -> None:
        """Count what the answer says of errors."""
        codes: list[int] = []
        collect_errors(type(response))(response, codes)
        if codes:
            self._add(api_key, codes)

    def note_error(self, api_key: int, code: int) -> None:
        """Count an error of an answer that carries nothing else."""
        self._add(api_key, [code])

    def _add(self, api_key: int, codes: list[int]) -> None:
        errors = self.of(api_key).errors
        for code in codes:
            errors[code] = errors.get(code, 0) + 1


@cache
def collect_errors(struct: type[Struct]) -> Callable[[Struct, list[int]], None]:
    """Return a function that appends the error codes of a struct, its own and those of its entries, to a list.

    The function is written out for each response, since each answer of the node goes through one.
    """
    lines = _lines(struct, "struct", "    ") or ["    pass"]
    namespace: dict[str, Any] = {}
    exec("\n".join(["def collect(struct, codes):", *lines]), namespace)  # noqa: S102 - names of fields alone
    collect: Callable[[Struct, list[int]], None] = namespace["collect"]
    return collect


def _lines(struct: type[Struct], name: str, indent: str) -> list[str]:
    lines = []
    for each in struct.__schema__.fields:
        if each.name == "error_code":
            lines.append(f"{indent}if {name}.error_code: codes.append(int({name}.error_code))")
        elif each.is_array and each.element == "struct":
            entry, entries = f"{name}_{each.name}", f"{name}_{each.name}_all"
            inner = _lines(each.struct, entry, f"{indent}        ")
            if inner:
                lines += [
                    f"{indent}{entries} = {name}.{each.name}",
                    f"{indent}if type({entries}) is list:",  # not those that are encoded already
                    f"{indent}    for {entry} in {entries} if len({entries}) < {_MOST_ENTRIES} "
                    f"else {entries}[:{_MOST_ENTRIES}]:",
                    *inner,
                ]
    return lines

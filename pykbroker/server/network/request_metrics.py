"""Requests by API: how many, how large, how long they took, and which errors their answers had (`RequestMetrics`).

The time of a request begins when its frame is whole and ends when the peer has taken the answer. Kafka's request and
response queues have no counterpart: one loop reads, handles and answers. What a Produce waits for replicas, and a Fetch
for records, is its remote time; what else passes before the answer is its local time.

Errors are counted by what an answer says, in its first entries: an answer of thousands is not gone through for that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from pykbroker.protocol.schema import Message, Struct

from ..runtime.histogram import Histogram

_MOST_ENTRIES: Final = 100
"""Entries of an answer whose errors are counted."""
_LAST_VERSION: Final = 50
"""Clients may ask ApiVersions in any version, which must not be one counter each; Kafka's APIs have 20."""
UNKNOWN_VERSION: Final = -1


class ApiMetrics:
    """The requests of one API. versions: how many there were of each. errors: how often an answer said which code.

    local_ns, remote_ns, send_ns: of all requests together, the parts of `total`.
    """

    __slots__ = ("errors", "local_ns", "remote_ns", "request_bytes", "send_ns", "total", "versions")

    def __init__(self) -> None:
        self.versions: dict[int, int] = {}
        self.errors: dict[int, int] = {}
        self.request_bytes = 0
        self.total = Histogram()
        self.local_ns = self.remote_ns = self.send_ns = 0


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
        try:
            api.versions[version] += 1
        except KeyError:
            of = version if 0 <= version <= _LAST_VERSION else UNKNOWN_VERSION
            api.versions[of] = api.versions.get(of, 0) + 1
        api.request_bytes += size_bytes
        api.local_ns += handled_ns - waited_ns
        api.remote_ns += waited_ns
        api.send_ns += sent_ns
        api.total.record(handled_ns + sent_ns)

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

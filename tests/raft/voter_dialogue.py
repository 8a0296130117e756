"""What is asked of one voter of the metadata quorum, written down: each request, and its answer.

A scenario (`voter_scenarios`) talks to a `VoterUnderTest`: a real Apache Kafka when conversations are recorded, our
pure `RaftNode` when they are checked. Everybody else is made up. What is different in every run, and between the two,
has a name: offsets by the epoch that ends there, directories, ports.
"""

from __future__ import annotations

from typing import Any, Protocol

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import Message, Struct
from pykbroker.raft.snapshots import SnapshotId

NODE_ID = 1
CLUSTER_ID = "rGKhQ5uFQ7WqXg2Vd1mY0A"
LISTENER = "CONTROLLER"
REQUEST_TIMEOUT_MS = 1000
QUIET_MS = 600_000
PROPERTIES = {
    "process.roles": "controller",
    "node.id": str(NODE_ID),
    "controller.listener.names": LISTENER,
    "controller.quorum.election.timeout.ms": str(QUIET_MS),
    "controller.quorum.fetch.timeout.ms": str(QUIET_MS),
    "controller.quorum.request.timeout.ms": str(REQUEST_TIMEOUT_MS),
    "metadata.max.idle.interval.ms": "0",
}
"""Of the voter: nothing happens while it is asked, but for what it is asked."""

OTHER_DIRECTORY = b"\xd0" * 16

_NOT_TOLD = {"throttle_time_ms", "error_message", "session_id", "aborted_transactions", "size", "log_start_offset"}
"""Words differ, and so do sizes, and when the log in front of a snapshot goes."""


class VoterUnderTest(Protocol):
    directory_id: bytes
    ports: dict[int, int]
    """Of all voters, by node."""

    def ask(self, request: Message, version: int) -> Message | None:
        """None where it does not answer."""
        ...

    def ends_of_epochs(self) -> dict[int, int]:
        """Where in its log each epoch ends."""
        ...

    def latest_snapshot(self) -> SnapshotId | None: ...


class Dialogue:
    """lines: the conversation so far. answers: as they were shown, by what the requests were called."""

    def __init__(self, voter: VoterUnderTest) -> None:
        self.voter = voter
        self.lines: list[str] = []
        self.answers: dict[str, str] = {}
        self._offsets: dict[int, str] = {}

    def ask(self, title: str, request: Message, version: int | None = None) -> None:
        assert title not in self.answers, title
        high = request.__schema__.stable_versions.high
        ends = self.voter.ends_of_epochs()
        self._offsets = {end: f"END_{epoch}" for epoch, end in ends.items()}
        answer = self.voter.ask(request, high if version is None else version)
        self.answers[title] = "no answer" if answer is None else self._shown(answer)
        self.lines += [f"# {title}", f"> {self._shown(request)}", f"< {self.answers[title]}", ""]

    def _shown(self, value: Any, name: str = "") -> str:
        match value:
            case Message() | Struct():
                empty = type(value)()
                told = [
                    f"{each.name}={self._shown(getattr(value, each.name), each.name)}"
                    for each in type(value).__schema__.fields
                    if each.name not in _NOT_TOLD and getattr(value, each.name) != getattr(empty, each.name)
                ]
                return f"{type(value).__name__ if isinstance(value, Message) else ''}{{{', '.join(told)}}}"
            case list():
                return f"[{', '.join(self._shown(each, name) for each in value)}]"
            case bytes() | memoryview() if name in ("records", "unaligned_records"):
                return "some" if value else "none"
            case bytes():
                return {self.voter.directory_id: "OWN", OTHER_DIRECTORY: "OTHER"}.get(value, f"{int.from_bytes(value)}")
            case int() if name == "error_code":
                return ErrorCode(value).name
            case int() if name == "port" and value in self.voter.ports.values():
                return next(f"PORT_{node}" for node, port in self.voter.ports.items() if port == value)
            case int() if name in ("fetch_offset", "end_offset", "high_watermark", "last_offset"):
                return self._offset(value)
            case _:
                return repr(value)

    def _offset(self, value: int) -> str:
        """By its name, or so many behind the greatest end that is less."""
        if value in self._offsets or value <= 0:
            return self._offsets.get(value, str(value))
        before = max((end for end in self._offsets if end < value), default=None)
        return str(value) if before is None else f"{self._offsets[before]}+{value - before}"

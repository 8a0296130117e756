"""The inputs and outputs of a member of the quorum, as values with Kafka's own messages.

An `Event` goes in through `RaftNode.step`; a `Ready` comes out, to be carried out in the order of its fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pykbroker.protocol.schema import Message

from .election_state import ElectionState
from .snapshots import SnapshotId

# In


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A peer or an administrator asks. token: of the caller's choice, comes back with the response.

    api_version: of the request; what a response may hold depends on it. listener_name: on which it came.
    """

    token: int
    request: Message
    api_version: int
    listener_name: str = ""


@dataclass(frozen=True, slots=True)
class RequestWithdrawn:
    """The requester of a parked request is gone and waits for no answer."""

    token: int


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """The answer to the request of that id. Its records may be a view into a buffer that lives until `ready`'s work
    is done.
    """

    request_id: int
    response: Message


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """No answer to the request will come.

    connection_refused: the peer's port refuses connections (ECONNREFUSED), so there is no process behind it.
    """

    request_id: int
    connection_refused: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """The snapshot that `Ready.snapshot_chunk` completed is durable, and the log begins and ends behind it.

    control_records: those in it about the quorum (KRaftVersionRecord, VotersRecord).
    """

    snapshot_id: SnapshotId
    control_records: Sequence[Message]


Event = RequestReceived | RequestWithdrawn | ResponseReceived | RequestFailed | SnapshotInstalled


# Out


@dataclass(frozen=True, slots=True)
class Destination:
    """The address of a peer. node_id: negative for a bootstrap server, whose node is not known."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request to a peer. ResponseReceived or RequestFailed answers it once, within the request timeout."""

    request_id: int
    destination: Destination
    request: Message


class ReadRange(NamedTuple):
    """Bytes that whoever keeps the files puts into a response.

    Of the log from `offset` on, whole batches and one at least (FetchResponse); or of the snapshot that the response
    names, from that byte on (FetchSnapshotResponse).
    """

    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class OutgoingResponse:
    token: int
    response: Message
    read: ReadRange | None = None


@dataclass(frozen=True, slots=True)
class ControlRecords:
    """One batch of raft's own records: LeaderChangeMessage, KRaftVersionRecord, VotersRecord."""

    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Append:
    """One batch for the log, or a follower's bytes as they came from the leader.

    base_offset: of its first record. count: how many offsets it takes. epoch: of the last batch. payload:
    ControlRecords, bytes that hold whole batches, or what was proposed, opaque to raft.
    """

    base_offset: int
    count: int
    epoch: int
    payload: object


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    """A piece of a snapshot that a leader sent. The first has position 0 and begins it anew.

    With is_last it is whole: make it durable, let the log begin at its end, and say SnapshotInstalled before `advance`.
    """

    snapshot_id: SnapshotId
    position: int
    data: bytes
    is_last: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """The work to carry out, in this order: store the election, truncate, install the snapshot, append and flush, send.

    A response with `read` may go out when the appends are written, without waiting for the flush.
    election: None where it need not be written again.
    """

    election: ElectionState | None = None
    truncate_to: int | None = None
    snapshot_chunk: SnapshotChunk | None = None
    appends: Sequence[Append] = ()
    requests: Sequence[OutgoingRequest] = ()
    responses: Sequence[OutgoingResponse] = ()

    def __bool__(self) -> bool:
        """Tell whether there is anything to do."""
        return bool(
            self.election is not None
            or self.truncate_to is not None
            or self.snapshot_chunk is not None
            or self.appends
            or self.requests
            or self.responses
        )

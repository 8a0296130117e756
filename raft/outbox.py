"""The outbox holds what a member of the quorum wants to have done, until `ready` hands it out."""

from __future__ import annotations

from pykbroker.protocol.schema import Message

from .events import Append, Destination, OutgoingRequest, OutgoingResponse, ReadRange, SnapshotChunk


class Outbox:
    def __init__(self) -> None:
        self.truncate_to: int | None = None
        self.snapshot_chunk: SnapshotChunk | None = None
        self.appends: list[Append] = []
        self.requests: list[OutgoingRequest] = []
        self.responses: list[OutgoingResponse] = []

    def truncate(self, offset: int) -> None:
        """A leader asks for it in an answer, and what was asked went out with all that was to be appended before."""
        assert not self.appends
        self.truncate_to = offset

    def request(self, request_id: int, destination: Destination, request: Message) -> None:
        self.requests.append(OutgoingRequest(request_id, destination, request))

    def respond(self, token: int, response: Message, read: ReadRange | None = None) -> None:
        self.responses.append(OutgoingResponse(token, response, read))

    def withdraw_reads(self) -> None:
        """The log may be truncated before they go out: they say the same without records, and are asked for again."""
        self.responses = [OutgoingResponse(each.token, each.response) for each in self.responses]

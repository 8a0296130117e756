"""The tap of an audit: it shows the auditor what clients ask and what they get, and changes nothing.

It stands before the faults, so that it sees what clients see. Messages are decoded while an audit goes on, only then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import trio

from pykbroker.protocol.api_keys import ApiKey, request_type, response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.framing import RequestHeader, decode_request_header, decode_response_header
from pykbroker.protocol.messages.fetch import FetchResponse
from pykbroker.protocol.messages.share_groups import ShareFetchResponse
from pykbroker.protocol.schema import Message
from pykbroker.server.network.handlers import ConnectionState
from pykbroker.server.network.tap import Answer, Handle, Tap
from pykbroker.server.network.transport import Part

from .auditor import AUDITED, Asked, Auditor
from .batch_headers import last_batch, size_bytes, with_headers
from .connections import Connections
from .who import Who

READ_AT_ONCE_BYTES: Final = 256 * 1024
"""Of a response; a larger one is read in a thread."""


class AuditTap:
    """The tap of one start of a node. auditor: the audit that goes on, or None. connections: those of all taps of the
    audit. inner: what is behind.
    """

    def __init__(
        self, auditor: Callable[[], Auditor | None], connections: Connections, inner: Tap | None = None
    ) -> None:
        self._auditor = auditor
        self._inner = inner
        self._connections = connections

    async def exchange(self, frame: memoryview, connection: ConnectionState, handle: Handle) -> Answer:
        auditor = self._auditor()
        if auditor is None:
            return await self._go_on(frame, connection, handle)
        try:
            header, body = decode_request_header(frame)
            asked = self._look(auditor, header, frame, body, connection)
        except (MalformedMessage, KeyError):
            return await self._go_on(frame, connection, handle)  # which says so
        try:
            answer = await self._go_on(frame, connection, handle)
        except BaseException:
            auditor.answered(asked, None)
            raise
        auditor.answered(asked, await self._message(header, asked, answer))
        return answer

    async def _go_on(self, frame: memoryview, connection: ConnectionState, handle: Handle) -> Answer:
        if self._inner is None:
            return await handle()
        return await self._inner.exchange(frame, connection, handle)

    def _look(
        self, auditor: Auditor, header: RequestHeader, frame: memoryview, body: int, connection: ConnectionState
    ) -> Asked:
        """Raises MalformedMessage, KeyError."""
        message = None
        if header.api_key in AUDITED and header.api_key != ApiKey.API_VERSIONS:
            # What is kept beyond the request is a copy; of a Produce nothing is kept.
            data = frame if header.api_key == ApiKey.PRODUCE else bytes(frame)
            message, _ = decode(request_type(header.api_key), header.api_version, data, body)
        who = Who(connection.client_address, header.client_id)
        return auditor.asks(self._connections.number_of(connection), who, header.api_key, message)

    async def _message(self, header: RequestHeader, asked: Asked, answer: Answer) -> Message | None:
        if answer is None or (asked.message is None and not asked.batches):
            return None
        if size_bytes(answer) > READ_AT_ONCE_BYTES:
            return await trio.to_thread.run_sync(_decoded, header, answer)
        return _decoded(header, answer)


def _decoded(header: RequestHeader, answer: Sequence[Part]) -> Message | None:
    """Return a response; of the records that it has for a partition, only the last batch, or none of a ShareFetch."""
    data = with_headers(answer)
    try:
        _, body = decode_response_header(data, header.api_key, header.api_version)
        message, _ = decode(response_type(header.api_key), header.api_version, data, body)
    except (MalformedMessage, KeyError):
        return None
    if isinstance(message, FetchResponse):
        for topic in message.responses:
            for partition in topic.partitions:
                if isinstance(partition.records, (bytes, memoryview)):
                    partition.records = last_batch(partition.records)
    elif isinstance(message, ShareFetchResponse):
        for shared in message.responses:
            for each in shared.partitions:
                each.records = b""  # what was acquired says it all
    return message

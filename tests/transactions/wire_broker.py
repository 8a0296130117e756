"""What scenarios need of a broker that is talked to by requests and looked at by its files, whoever runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from pykbroker.protocol.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.protocol.schema import Message

from .scenarios import PARTITIONS, TOPICS
from .session import Marker

_TRANSACTION_COORDINATOR = 1
_COMMIT = b"\x00\x01"


class WireBroker(ABC):
    @abstractmethod
    async def call(self, client: str, request: Message, version: int) -> Message: ...

    @abstractmethod
    async def sleep(self, ms: int) -> None: ...

    @abstractmethod
    def segments(self) -> Iterator[tuple[str, bytes]]:
        """The name of a partition's directory, and what is in one of its log files."""

    async def prepare(self) -> None:
        """Topics, and both coordinators."""
        topics = [CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1) for name in TOPICS]
        await self.call("x", CreateTopicsRequest(topics=topics, timeout_ms=10_000), 5)
        await self.call("x", FindCoordinatorRequest(key="any"), 3)
        await self.call("x", FindCoordinatorRequest(key="any", key_type=_TRANSACTION_COORDINATOR), 3)
        while not await self._is_loaded():
            await self.sleep(100)

    async def _is_loaded(self) -> bool:
        """Whether there are producer ids, and every partition of `__transaction_state` is served; these names meet
        them all. The first producer id, 0, is used up by this.
        """
        initialized = await self.call("x", InitProducerIdRequest(transactional_id=None), 5)
        assert isinstance(initialized, InitProducerIdResponse)
        if initialized.error_code:
            return False
        for number in range(20):
            ended = await self.call("x", EndTxnRequest(transactional_id=f"any-{number}", producer_id=1), 3)
            assert isinstance(ended, EndTxnResponse)
            if ended.error_code != ErrorCode.INVALID_PRODUCER_ID_MAPPING:
                return False
        return True

    async def use_up_epochs(self, transactional_id: str, last: int) -> tuple[int, int]:
        producer = (-1, -1)
        while producer[1] < last:
            request = InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=60_000,
                producer_id=producer[0],
                producer_epoch=producer[1],
            )
            response = await self.call("p", request, 5)
            assert isinstance(response, InitProducerIdResponse)
            producer = response.producer_id, response.producer_epoch
        return producer

    def records(self) -> list[tuple[bytes, bytes | None]]:
        return [
            (bytes(record.key or b""), None if record.value is None else bytes(record.value))
            for directory, data in self.segments()
            if directory.startswith("__transaction_state-")
            for batch in iter_batches(data, allow_partial=True)
            for record in iter_records(batch)
        ]

    def markers(self) -> list[Marker]:
        return [
            Marker(
                directory, batch.header.producer_id, batch.header.producer_epoch, (record.key or b"")[2:4] == _COMMIT
            )
            for directory, data in self.segments()
            for batch in iter_batches(data, allow_partial=True)
            if batch.header.is_control
            for record in iter_records(batch)
        ]

"""Members of share groups and of streams groups at a broker that runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Message, ShareConsumer

from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.client.addresses import parse_address
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.streams_groups import StreamsGroupHeartbeatRequest

from .streams_requests import LEAVING, ONE_TASK_A_PARTITION, streams_beat, streams_joining

_A_GROUP: Final = 32
_LATER: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


def configure_group(bootstrap: str, group: str, **configs: str) -> None:
    """Set a group's configs, with underscores for dots."""
    given = [
        IncrementalAlterConfigsRequestAlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in configs.items()
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=_A_GROUP, resource_name=group, configs=given
    )
    with Wire(parse_address(bootstrap)) as wire:
        answer: Any = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer


@contextmanager
def share_consumer(bootstrap: str, group: str, *topics: str, **config: str) -> Iterator[ShareConsumer]:
    """A member of a share group that begins at the first record; config with underscores for dots."""
    configure_group(bootstrap, group, share_auto_offset_reset="earliest")
    given = {name.replace("_", "."): value for name, value in config.items()}
    consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 3, **given})
    try:
        consumer.subscribe(list(topics))
        yield consumer
    finally:
        consumer.close()


def shared_records(consumer: ShareConsumer, count: int) -> list[Message]:
    """Poll until so many records are there."""
    found: list[Message] = []

    def are_there() -> bool:
        found.extend(consumer.poll(0.5) or ())
        return len(found) >= count

    until(are_there, f"{count} records")
    assert all(each.error() is None for each in found)
    return found


class StreamsMember:
    """A member of a streams group, whose heartbeats a test sends. A context manager: it leaves in the end."""

    def __init__(self, bootstrap: str, group: str, name: str, topology: Any = ONE_TASK_A_PARTITION) -> None:
        self._wire = Wire(parse_address(bootstrap))
        self.group = group
        self.name = name
        self.topology = topology
        self.epoch = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wire.call(streams_beat(self.group, self.name, LEAVING), 0)
        self._wire.__exit__(kind, error, trace)

    def join(self) -> Any:
        """Join, as soon as there is a coordinator, and return its answer."""
        answers: list[Any] = []

        def has_joined() -> bool:
            self._wire.call(FindCoordinatorRequest(key=self.group, key_type=0), 3)  # which has its topic created
            answers.append(self._beat(streams_joining(self.group, self.name, self.topology)))
            return answers[-1].error_code not in _LATER

        until(has_joined, "a coordinator")
        return answers[-1]

    def beat(self, **fields: Any) -> Any:
        return self._beat(streams_beat(self.group, self.name, self.epoch, **fields))

    def _beat(self, request: StreamsGroupHeartbeatRequest) -> Any:
        answer: Any = self._wire.call(request, 0, client_id=self.name)
        if answer.error_code == ErrorCode.NONE:
            self.epoch = answer.member_epoch
        return answer

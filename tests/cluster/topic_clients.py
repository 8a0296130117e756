"""Clients that create, delete and configure topics of their own, and note when they were answered what.

They are two at most, and ask whichever broker: the order in which the log has what was acknowledged must be one that
they could have seen (`oracles.topic_order`).
"""

from __future__ import annotations

import random
from typing import Any

import trio

from pykbroker.metadata.image import TOPIC_RESOURCE
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.schema import Message
from tests.coordination.stage import Lost, Wire

from .oracles.topic_order import ALTER, CONFIG, CREATE, DELETE, Mutation
from .stage import ClusterStage

NAMES = ("one", "other")
_SET = 0
_MEAN_PAUSE_S = 0.2
_ANSWERS_WITHIN_S = 1.5


class TopicClients:
    """mutations: what all of them asked for, in the order in which they did. In every other run there are none."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"topics {seed}")
        self.count = self._rng.choice((0, 2))
        self.mutations: list[Mutation] = []

    async def run(self, stage: ClusterStage) -> None:
        """Until all is quiet."""
        async with trio.open_nursery() as nursery:
            for number in range(self.count):
                nursery.start_soon(self._act, stage, Wire(stage, f"topics {number}"))

    async def _act(self, stage: ClusterStage, wire: Wire) -> None:
        while True:
            await trio.sleep(self._rng.expovariate(1 / _MEAN_PAUSE_S))
            if stage.is_quiet:
                break
            await self._mutate(wire)
        wire.cut()

    async def _mutate(self, wire: Wire) -> None:
        kind, name = self._rng.choice((CREATE, CREATE, DELETE, ALTER)), self._rng.choice(NAMES)
        value = len(self.mutations) + 1
        mutation = Mutation(kind, name, value, invoked_s=trio.current_time())
        self.mutations.append(mutation)
        request, version = _request(mutation)
        try:
            answer = await wire.ask(request, version, timeout_s=_ANSWERS_WITHIN_S)
        except Lost:
            return
        answered: Any = answer.topics if kind == CREATE else answer.responses
        if answered[0].error_code == 0:
            mutation.acknowledged_s = trio.current_time()


def _request(mutation: Mutation) -> tuple[Message, int]:
    name, value = mutation.topic, str(mutation.value)
    if mutation.kind == CREATE:
        topic = CreatableTopic(
            name=name, num_partitions=1, replication_factor=3, configs=[CreatableTopicConfig(name=CONFIG, value=value)]
        )
        return CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7
    if mutation.kind == DELETE:
        return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000), 6
    config = IncrementalAlterConfigsRequestAlterableConfig(name=CONFIG, config_operation=_SET, value=value)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configs=[config]
    )
    return IncrementalAlterConfigsRequest(resources=[resource]), 1

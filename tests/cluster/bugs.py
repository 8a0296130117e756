"""Mistakes that nodes of a cluster could make: each is planted in all of them, and the simulation must find it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from pykbroker.server.coordinator_driver import CoordinatorDriver
from pykbroker.server.coordinator_log import Replayer
from pykbroker.server.led_shard import LedShard
from tests.replication import bugs as of_replicas
from tests.simulations import Bugs

BUGS = Bugs()

BUGS.plant(2)(of_replicas.producers_are_answered_before_the_high_watermark)
BUGS.plant(8)(of_replicas.the_high_watermark_is_the_leaders_own_log_end)
BUGS.plant(2)(of_replicas.readers_see_what_is_not_replicated)
BUGS.plant(6)(of_replicas.followers_keep_no_sequences)
BUGS.plant(16)(of_replicas.sequences_are_forgotten_when_a_replica_is_elected)
BUGS.plant(1)(of_replicas.a_new_leader_keeps_the_leader_epoch)


@BUGS.plant(10)
def coordinators_serve_before_their_log_is_read() -> Iterator[None]:
    async def load(self: CoordinatorDriver[Any, Any, Any], led: LedShard[Any]) -> None:
        self._activate(led, Replayer(led.shard, self.decode_record, led.name))

    with patch.object(CoordinatorDriver, "_load_shard", load):
        yield

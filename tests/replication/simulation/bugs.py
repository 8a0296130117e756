"""Mistakes that replicas could make: each is planted while its context lasts, and the simulation must find it.

They are mistakes that pass every exchange of one request and one answer. What is wrong shows after an election, a crash
or a message that came late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from pykbroker.replication.isr import InSyncReplicas
from tests.replication import bugs as of_replicas
from tests.simulations import Bugs

from .broker import SimulatedBroker
from .controller import SimulatedController
from .invariants import Violated
from .world import simulate

BUGS = Bugs()

BUGS.plant(0)(of_replicas.producers_are_answered_before_the_high_watermark)
BUGS.plant(93)(of_replicas.a_wait_knows_an_offset_and_no_leader_epoch)
BUGS.plant(340)(of_replicas.a_new_leader_shows_what_it_never_flushed)
BUGS.plant(31)(of_replicas.a_request_that_its_follower_broke_off_takes_it_back)
BUGS.plant(0)(of_replicas.the_high_watermark_is_the_leaders_own_log_end)
BUGS.plant(2)(of_replicas.followers_do_not_truncate)
BUGS.plant(0)(of_replicas.followers_keep_no_sequences)
BUGS.plant(0)(of_replicas.repeated_sequences_are_appended_again)
BUGS.plant(100)(of_replicas.the_isr_shrinks_without_the_controllers_word)
BUGS.plant(22)(of_replicas.the_high_watermark_does_not_wait_for_whom_a_pending_change_removes)
BUGS.plant(910001357)(of_replicas.metadata_that_are_known_already_end_a_pending_change)
BUGS.plant(0)(of_replicas.readers_see_what_is_not_replicated)
BUGS.plant(2)(of_replicas.what_a_leader_lacks_on_its_disk_counts_as_replicated)
BUGS.plant(2)(of_replicas.followers_truncate_to_their_high_watermark_alone)
BUGS.plant(2)(of_replicas.followers_name_no_epoch_of_their_last_record)
BUGS.plant(0)(of_replicas.sequences_are_forgotten_when_a_replica_is_elected)
BUGS.plant(700003251)(of_replicas.a_broker_leads_what_its_last_process_led)
BUGS.plant(52)(of_replicas.whoever_lives_is_elected)
BUGS.plant(0)(of_replicas.a_new_leader_keeps_the_leader_epoch)
BUGS.plant(0)(of_replicas.a_follower_takes_the_leaders_high_watermark_for_its_own)


# Leaders


@BUGS.plant(253)
def a_replica_joins_the_isr_before_it_has_what_is_replicated() -> Iterator[None]:
    growth = InSyncReplicas.growth

    def grow_early(self: InSyncReplicas, follower: Any, high_watermark: int, epoch_start_offset: int) -> Any:
        return growth(self, follower, 0, 0)

    def maximal_without_it(self: InSyncReplicas, isr: tuple[int, ...], *rest: int) -> Any:
        change = propose(self, isr, *rest)
        self.maximal = self.committed
        return change

    propose = InSyncReplicas.propose
    with (
        patch.object(InSyncReplicas, "growth", grow_early),
        patch.object(InSyncReplicas, "propose", maximal_without_it),
    ):
        yield


@BUGS.plant(11)
def a_broker_serves_before_the_controller_has_let_it_in() -> Iterator[None]:
    begin = SimulatedBroker.begin

    def begin_serving(self: SimulatedBroker) -> None:
        begin(self)
        self.serves = True

    with patch.object(SimulatedBroker, "begin", begin_serving):
        yield


# Followers


# The controller


@BUGS.plant(23)
def the_controller_answers_before_its_records_are_committed() -> Iterator[None]:
    def answer_all(self: SimulatedController) -> None:
        waiting, self._waiting = self._waiting, []
        for _, reply, response in waiting:
            reply(response)

    handle = SimulatedController.handle

    def handle_and_answer(self: SimulatedController, request: Any, reply: Any) -> None:
        handle(self, request, reply)
        answer_all(self)

    with patch.object(SimulatedController, "handle", handle_and_answer):
        yield


def _is_wrong(seed: int) -> bool:
    try:
        simulate(seed)
    except Violated:
        return True
    return False


HUNT = BUGS.hunt("replication", _is_wrong)

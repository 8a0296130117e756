"""Share groups, made wrong."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ..model_broker import DELIVERY_LIMIT, PLAIN, SHARERS
from ..operations import OK, Acknowledgement, Delivery, Operation, Read
from .places import Operations, append, chosen, final_read, plants


def _deliver_again(operations: Operations, said: Acknowledgement, count: int) -> Operation:
    """When all is over."""
    read = next(
        each
        for operation in operations
        for each in operation.reads
        if (each.key, each.offset) == (said.key, said.offset)
    )
    given = Delivery(SHARERS, said.key, said.offset, count)
    return append(operations, "deliver", reads=[read], deliveries=[given])


def _acknowledged(operations: Operations, *kinds: str) -> Iterator[tuple[Operation, Acknowledgement]]:
    for operation in operations:
        for said in operation.acknowledgements:
            if said.kind in kinds and said.outcome == OK:
                yield operation, said


@plants("delivered-again")
def a_settled_record_is_delivered_again(operations: Operations, rng: Random) -> Operations | None:
    place = chosen(rng, list(_acknowledged(operations, "accept", "reject")))
    if place is None:
        return None
    _deliver_again(operations, place[1], min(place[1].delivery_count + 1, DELIVERY_LIMIT))
    return operations


@plants("delivered-again")
def a_settled_record_is_delivered_under_faults_and_taken_back(operations: Operations, rng: Random) -> Operations | None:
    heal = next(each for each in operations if each.kind == "heal")
    place = chosen(
        rng, [each for each in _acknowledged(operations, "accept") if each[0].completed_ns < heal.invoked_ns]
    )
    if place is None:
        return None
    _, said = place
    again = _deliver_again(operations, said, min(said.delivery_count + 1, DELIVERY_LIMIT))
    again.invoked_ns = heal.invoked_ns - 1
    append(
        operations,
        "acknowledge",
        acknowledgements=[said._replace(delivery_count=again.deliveries[0].delivery_count, kind="release")],
    )
    operations[-1].proc = again.proc
    return operations


@plants("stale-delivery")
def a_leader_delivers_what_its_successor_had_settled(operations: Operations, rng: Random) -> Operations | None:
    heal = next(each for each in operations if each.kind == "heal")
    place = chosen(
        rng, [each for each in _acknowledged(operations, "accept") if each[0].completed_ns < heal.invoked_ns]
    )
    if place is None:
        return None
    again = _deliver_again(operations, place[1], place[1].delivery_count)
    again.details = {"asked_ns": heal.invoked_ns - 1}
    return operations


@plants("settled-twice")
def two_settlements_are_answered(operations: Operations, rng: Random) -> Operations | None:
    place = chosen(rng, list(_acknowledged(operations, "accept", "reject")))
    if place is None:
        return None
    append(operations, "acknowledge", acknowledgements=[place[1]])
    return operations


@plants("delivery-limit")
def a_record_is_delivered_too_often(operations: Operations, rng: Random) -> Operations | None:
    given = chosen(rng, [each for each in operations if each.deliveries])
    if given is None:
        return None
    at = rng.randrange(len(given.deliveries))
    given.deliveries[at] = given.deliveries[at]._replace(delivery_count=rng.choice((0, DELIVERY_LIMIT + 1)))
    return operations


@plants("delivery-count")
def a_released_record_has_its_count_again(operations: Operations, rng: Random) -> Operations | None:
    place = chosen(rng, list(_acknowledged(operations, "release")))
    if place is None:
        return None
    _deliver_again(operations, place[1], rng.randint(1, place[1].delivery_count))
    return operations


@plants("delivery-count")
def a_count_falls_when_all_is_healed(operations: Operations, rng: Random) -> Operations | None:
    place = chosen(rng, list(_acknowledged(operations, "accept", "release")))
    if place is None:
        return None
    first = _deliver_again(operations, place[1], DELIVERY_LIMIT)
    second = _deliver_again(operations, place[1], rng.randint(1, DELIVERY_LIMIT - 1))
    second.invoked_ns = second.completed_ns = first.completed_ns + 1
    return operations


@plants("stale-delivery-count")
def a_leader_delivers_with_a_count_that_its_successor_had_released(
    operations: Operations, rng: Random
) -> Operations | None:
    heal = next(each for each in operations if each.kind == "heal")
    found = [each for each in _acknowledged(operations, "release") if each[0].completed_ns < heal.invoked_ns - 1]
    place = chosen(rng, found)
    if place is None:
        return None
    again = _deliver_again(operations, place[1], place[1].delivery_count)
    again.details = {"asked_ns": heal.invoked_ns - 1}
    return operations


@plants("unsettled")
def a_record_is_never_delivered(operations: Operations, rng: Random) -> Operations | None:
    read = _any_record(operations, rng)
    if read is None:
        return None
    for operation in operations:
        if operation.deliveries:
            operation.reads = [each for each in operation.reads if each != read]
            operation.deliveries = [each for each in operation.deliveries if each[1:3] != read[:2]]
        operation.acknowledgements = [each for each in operation.acknowledgements if each[1:3] != read[:2]]
    return operations


@plants("unsettled")
def the_acknowledgements_of_a_record_are_all_refused(operations: Operations, rng: Random) -> Operations | None:
    read = _any_record(operations, rng)
    counts = [
        each.delivery_count
        for operation in operations
        for each in operation.deliveries
        if read and each[1:3] == read[:2]
    ]
    if read is None or max(counts) * 2 >= DELIVERY_LIMIT:
        return None
    for operation in operations:
        operation.acknowledgements = [
            each._replace(outcome="fail") if each[1:3] == read[:2] else each for each in operation.acknowledgements
        ]
    return operations


def _any_record(operations: Operations, rng: Random) -> Read | None:
    return chosen(rng, final_read(operations, rng.choice(PLAIN)).reads)


@plants("stuck")
def a_share_group_accepts_nothing_again(operations: Operations, rng: Random) -> Operations:
    heal = next(each for each in operations if each.kind == "heal")
    for operation in operations:
        if operation.invoked_ns > heal.invoked_ns:
            operation.acknowledgements = []
    return operations

"""A broker that is killed in front of each step of a commit or an abort: the next one carries on where it stopped."""

from __future__ import annotations

import pytest
import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import ListTransactionsRequest

from .transacting import TransactionalProducer, Transactions, transacting

NONE = ErrorCode.NONE
GROUP = "g"
MOST_CHANGES = 13
"""More than a transaction's end makes to the disk: its decision, three markers, entries in the transaction indexes for
an abort, that it is complete."""


async def begin(node: Transactions, *, second_protocol: bool) -> TransactionalProducer:
    """A transaction in two partitions, with a group's offset."""
    producer = await node.producer(second_protocol=second_protocol)
    assert await node.find_coordinator(GROUP, key_type=0) is NONE
    if not second_protocol:
        assert await producer.add(0, 1) == {0: NONE, 1: NONE}
        assert await producer.add_offsets(GROUP) is NONE
    for index in (0, 1):
        assert await producer.send(b"a", index=index) is NONE
    assert await producer.commit_offset(GROUP, 7) is NONE
    return producer


async def end_again(node: Transactions, producer: TransactionalProducer, *, commit: bool) -> ErrorCode:
    """As clients do: the coordinator may still be loading, or at work."""
    while True:
        assert await node.find_coordinator(producer.transactional_id) is NONE
        error_code = await producer.end(commit=commit)
        if error_code not in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            return error_code
        await trio.sleep(0.05)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("second_protocol", [False, True])
def test_a_transaction_ends_once_wherever_the_broker_was_killed(second_protocol: bool, commit: bool) -> None:
    deaths: list[int] = []

    async def main(node: Transactions) -> None:
        producer = await begin(node, second_protocol=second_protocol)
        await trio.sleep(5)  # what new logs make durable in the background is not what this is about
        process = node.world.node.process
        node.world.node.die_at(process.changes + len(deaths))
        try:
            assert await producer.end(commit=commit) is NONE
        except (trio.BrokenResourceError, EOFError):
            deaths.append(process.changes)
            await node.start_again()
            assert await end_again(node, producer, commit=commit) is NONE
        else:
            node.world.node.die_at(None)
            deaths.append(-1)
        (listed,) = (await node.ask(ListTransactionsRequest(), 1)).transaction_states
        assert listed.transaction_state == ("CompleteCommit" if commit else "CompleteAbort")
        seen = [b"a"] if commit else []
        assert (await node.read(0), await node.read(1)) == (seen, seen)
        assert await node.find_coordinator(GROUP, key_type=0) is NONE
        assert await node.committed(GROUP, require_stable=True) == (7 if commit else -1)
        for index in (0, 1):
            assert await node.end_offset(index) == await node.end_offset(index, committed=False)

    while not deaths or deaths[-1] >= 0:
        assert len(deaths) < MOST_CHANGES
        transacting(main)
    assert len(deaths) > 5, "in front of the decision, of each of three markers, and of what says that it is complete"

"""What holds for a transaction coordinator whatever producers do, whatever is delayed, and whenever it crashes.

Producers that share a transactional id begin, write, commit, abort and repeat themselves; the coordinator crashes with
any part of its log that was not committed; markers are late, come twice, or come from a coordinator of the past.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.transactions.requests import AddPartitions, PartitionsAdded
from tests.examples import examples

from .model import CrashingWorld, DataPartition, FlyingMarker, Instance
from .world import NO_PRODUCER, Producer, after

TRANSACTIONAL_ID = "a"
PARTITIONS = tuple(TopicPartition("orders", index) for index in range(3))
TIMEOUT_MS = 25_000
SECOND_PROTOCOL = 5
"""From this version of EndTxn on."""
_FATAL = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
}


@dataclass(eq=False)
class Client:
    """One producer. waits: for an answer. ending: what it asked for and has no answer to."""

    name: str
    end_version: int
    producer: Producer | None = None
    instance: Instance | None = None
    waits: bool = False
    ending: EndTxnRequest | None = None

    @property
    def may_write(self) -> bool:
        return self.producer is not None and not self.waits and self.ending is None

    def die(self) -> None:
        self.producer = None
        self.instance = None
        self.ending = None


class Progress(Enum):
    """How far the world comes with what a rule did, before the next one."""

    APPENDED = "appended"
    REPLICATED = "replicated"
    SETTLED = "settled"


progresses = st.sampled_from((Progress.SETTLED, Progress.REPLICATED, Progress.APPENDED))
often = st.integers(0, 3).map(bool)


class CoordinatorMachine(RuleBasedStateMachine):
    """owner: who was the last to begin, as the coordinator has it; told_owner: as far as it was told."""

    @initialize(
        versions=st.sampled_from(((4, 4), (5, 5), (5, 4))),
        level=st.sampled_from((1, 2)),
        epoch=st.sampled_from((0, 0, 32_764, 32_766)),
    )
    def begin(self, versions: tuple[int, ...], level: int, epoch: int) -> None:
        self.world = CrashingWorld(level)
        self.clients = [Client(f"client {number}", version) for number, version in enumerate(versions)]
        self.partitions = {at: DataPartition(at) for at in PARTITIONS}
        self.instances: list[Instance] = []
        self.owner: Client | None = None
        self.told_owner: Client | None = None
        self.holders: dict[Producer, Client] = {}
        self.sent: list[tuple[Client, Producer, TopicPartition]] = []
        if epoch:
            self._age(epoch)

    def _age(self, epoch: int) -> None:
        """As if many producers had begun with this id already."""
        request = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=TIMEOUT_MS)
        self.world.submit(request, 5, lambda response: None)
        transaction = self.world.shard.transactions[TRANSACTIONAL_ID]
        transaction.producer_epoch = epoch
        self.world.log.append(transaction.record(self.world.transaction_version).encode())
        self.world.commit()

    # Producers

    actors = st.sampled_from((True, True, False))

    @rule(is_owner=actors, knows_itself=st.booleans(), is_content=often, progress=progresses)
    def init(self, is_owner: bool, knows_itself: bool, is_content: bool, progress: Progress) -> None:
        client = self._client(is_owner)
        if client.producer is not None and is_content:
            return
        self._init(client, client.producer if knows_itself and client.producer else NO_PRODUCER)
        self._go_on(progress)

    def _client(self, is_owner: bool) -> Client:
        """The one who began last, or another; it has its answer."""
        others = [client for client in self.clients if client is not self.owner]
        client = self.owner if is_owner and self.owner is not None else others[0]
        if client.waits:
            self._go_on(Progress.REPLICATED)
        return client

    def _init(self, client: Client, expected: Producer) -> None:
        request = InitProducerIdRequest(
            transactional_id=TRANSACTIONAL_ID,
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        client.waits = True
        response = self.world.submit(request, 5, lambda response: self._initialized(client, response))
        if not response.error_code:
            self.owner = client

    def _initialized(self, client: Client, response: InitProducerIdResponse) -> None:
        client.waits = False
        if response.error_code:
            if response.error_code in _FATAL:
                client.die()
            return
        client.die()
        client.producer = (response.producer_id, response.producer_epoch)
        self.told_owner = client
        self._holds(client)

    def _holds(self, client: Client) -> None:
        assert client.producer is not None
        holder = self.holders.setdefault(client.producer, client)
        assert holder is client, f"{holder.name} and {client.name} are both {client.producer}"

    @rule(is_owner=actors, partitions=st.sets(st.sampled_from(PARTITIONS), min_size=1), progress=progresses)
    def write(self, is_owner: bool, partitions: set[TopicPartition], progress: Progress) -> None:
        """Where it is not known whether the partition is in the transaction, it is added; its broker asks again."""
        client = self._client(is_owner)
        for at in sorted(partitions):
            if client.producer is None and not client.waits:
                self._init(client, NO_PRODUCER)
                self._go_on(progress)
            if client.may_write:
                self._ask_partition(client, at, verify_only=False)
                self._go_on(progress)

    def _ask_partition(self, client: Client, at: TopicPartition, *, verify_only: bool) -> None:
        assert client.producer is not None
        producer = client.producer
        request = AddPartitions(
            transactional_id=TRANSACTIONAL_ID,
            producer_id=producer[0],
            producer_epoch=producer[1],
            partitions=(at,),
            verify_only=verify_only,
            client_transaction_version=2 if client.end_version >= SECOND_PROTOCOL else 0,
        )
        client.waits = True

        def answered(response: PartitionsAdded) -> None:
            client.waits = False
            error_code = response.errors[at]
            if error_code in _FATAL:
                client.die()
            elif error_code is ErrorCode.NONE and not verify_only:
                client.instance = client.instance or self._new_instance()
                self._ask_partition(client, at, verify_only=True)
            elif error_code is ErrorCode.NONE:
                assert client.instance is not None
                if not self.partitions[at].write(producer, client.instance):
                    client.die()
                self.sent.append((client, producer, at))

        response = self.world.submit(request, 5, answered)
        if response.errors[at] is ErrorCode.NONE:
            self._must_own(client)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        """A request that was slow; its partition's broker asks whether it still belongs to a transaction."""
        client, producer, at = data.draw(st.sampled_from(self.sent[-4:]))
        request = AddPartitions(
            transactional_id=TRANSACTIONAL_ID,
            producer_id=producer[0],
            producer_epoch=producer[1],
            partitions=(at,),
            verify_only=True,
        )

        def answered(response: PartitionsAdded) -> None:
            if response.errors[at] is ErrorCode.NONE:
                partition = self.partitions[at]
                partition.write(producer, partition.open.get(producer[0]) or client.instance or self._new_instance())

        self.world.submit(request, 5, answered)
        self._go_on(Progress.REPLICATED)

    def _new_instance(self) -> Instance:
        self.instances.append(Instance(len(self.instances)))
        return self.instances[-1]

    def _must_own(self, client: Client) -> None:
        assert self.owner is client, f"{client.name} got through, and was not the last to begin"

    @rule(is_owner=actors, progress=progresses)
    def commit(self, is_owner: bool, progress: Progress) -> None:
        self._end(self._client(is_owner), True)
        self._go_on(progress)

    @rule(is_owner=actors, progress=progresses)
    def abort(self, is_owner: bool, progress: Progress) -> None:
        self._end(self._client(is_owner), False)
        self._go_on(progress)

    def _end(self, client: Client, commit: bool) -> None:
        """Again and again until it is answered; what was asked for once stays."""
        if client.producer is None:
            return
        if client.ending is None:
            if client.instance is None:
                if commit or client.end_version < SECOND_PROTOCOL:
                    return
                client.instance = self._new_instance()
            client.ending = EndTxnRequest(
                transactional_id=TRANSACTIONAL_ID,
                producer_id=client.producer[0],
                producer_epoch=client.producer[1],
                committed=commit,
            )
            client.instance.asked_to_commit = commit
        client.waits = True
        response = self.world.submit(client.ending, client.end_version, lambda response: self._ended(client, response))
        if not response.error_code:
            self._must_own(client)

    def _ended(self, client: Client, response: EndTxnResponse) -> None:
        client.waits = False
        assert client.ending is not None
        if response.error_code in _FATAL:
            client.die()
        if response.error_code:
            return
        assert client.instance is not None
        assert client.producer is not None
        client.instance.tell(client.ending.committed)
        client.instance = client.ending = None
        if client.end_version >= SECOND_PROTOCOL:
            before, client.producer = client.producer, after(response)
            assert client.producer == (before[0], before[1] + 1) or client.producer[0] > before[0]
            self._holds(client)

    # The world

    def _go_on(self, progress: Progress) -> None:
        """What was appended stays so, is replicated, or leads to all that follows from it."""
        while progress is not Progress.APPENDED and (self.world.has_due or self.world.flying):
            self.world.commit()
            if progress is Progress.REPLICATED and not self.world.has_due:
                return
            if progress is Progress.SETTLED and self.world.flying:
                self._deliver(self.world.flying.pop(0))

    @rule(progress=progresses)
    def go_on(self, progress: Progress) -> None:
        self._go_on(progress)

    @rule(kept=st.integers(0, 4), is_lucky=often)
    def crash(self, kept: int, is_lucky: bool) -> None:
        if is_lucky:
            return
        self.world.crash(kept)
        self.owner = self.told_owner
        for client in self.clients:
            client.waits = False

    @rule(seconds=st.sampled_from((40, 10)), have_producer_ids=often, progress=progresses)
    def pass_time(self, seconds: int, have_producer_ids: bool, progress: Progress) -> None:
        """From then on there may be no producer ids for some time."""
        self.world.out_of_producer_ids = not have_producer_ids
        self.world.pass_time(seconds * 1000)
        self._go_on(progress)

    @precondition(lambda self: self.world.flying)
    @rule(data=st.data(), comes_again=st.booleans())
    def deliver_marker(self, data: st.DataObject, comes_again: bool) -> None:
        """In the first protocol nothing tells a marker that comes again from that of the next transaction."""
        marker = data.draw(st.sampled_from(self.world.flying))
        if not (comes_again and marker.wanted.transaction_version >= 2):
            self.world.flying.remove(marker)
        self._deliver(marker)

    def _deliver(self, marker: FlyingMarker) -> None:
        if self.partitions[marker.at].append_marker(marker.wanted) is ErrorCode.NONE:
            self.world.report_written(marker)

    # What holds

    @invariant()
    def the_log_is_complete(self) -> None:
        self.world.assert_log_is_complete()

    @invariant()
    def open_records_are_known_to_the_coordinator(self) -> None:
        """A partition whose readers wait is in a transaction that will end, or its marker is on its way."""
        known = {
            (transaction.producer_id, at)
            for transaction in self.world.shard.transactions.values()
            if not transaction.state.is_at_rest
            for at in transaction.partitions
        }
        for at, partition in self.partitions.items():
            for producer_id in partition.open:
                assert (producer_id, at) in known, f"{at}: a transaction of producer {producer_id} hangs"

    def teardown(self) -> None:
        """Left alone, everything that was decided comes to an end."""
        if not hasattr(self, "world"):
            return
        self._go_on(Progress.SETTLED)
        for transaction in self.world.shard.transactions.values():
            assert not transaction.state.is_prepared, f"{transaction.transactional_id} is never complete"
        for instance in self.instances:
            is_open = any(instance in partition.open.values() for partition in self.partitions.values())
            assert is_open or instance.outcomes.keys() == instance.writes
            assert instance.told is None or not is_open


TestCoordinatorMachine = CoordinatorMachine.TestCase
TestCoordinatorMachine.settings = examples(120, stateful_step_count=100)

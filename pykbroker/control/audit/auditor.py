"""The auditor follows what clients ask and are answered, and finds what loses records, repeats them, or may.

Only what passes the wire is looked at: fetches, commits, transactions, records that are sent. What a client does with
the records, nobody sees: a record that was fetched counts as read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import NO_UUID, Message

from .batch_headers import end_of_records
from .fetches import Fetches
from .findings import Finding, Findings, Kind
from .refusals import BEHIND, NO_MEMBER, Refusal, Refusals
from .remembered import Remembered
from .sends import Batch, Sends, batch_of
from .shared_records import LOST, LateAcknowledgement, SharedRecords, newest, settled
from .who import Place, Who, of_client_at

MOST_OFFSETS: Final = 50_000
MOST_MEMBERS: Final = 10_000
MOST_TRANSACTIONS: Final = 5_000
MOST_COMMITS_PENDING: Final = 50_000
"""In all transactions that are open."""
MOST_GROUPS_OF_ONE: Final = 100

AUDITED: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_DELETE,
        ApiKey.DELETE_GROUPS,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.END_TXN,
    }
)
"""The requests that are decoded; of others it only counts that they come."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request in hand. number: of its connection. batches: those of a Produce, of which nothing else is kept.

    message: None where it is none of `AUDITED`.
    """

    number: int
    who: Who
    api_key: int
    message: Message | None
    batches: Sequence[Batch] = ()


@dataclass(slots=True)
class _Transaction:
    """The transactions of a transactional id. commits: offsets that its end commits, and by which member. groups: those
    that it has ever committed offsets for. beside: a group whose offsets its client has committed without it, while the
    one that is open has records.
    """

    who: Who
    beside: str = ""
    commits: dict[tuple[str, Place], tuple[int, str]] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)


class Auditor:
    """An audit of one broker's clients. place_of: a partition by its topic's name or id. now_ms: the wall clock.
    is_open: tells of a connection's number whether its client is there still.
    """

    def __init__(
        self,
        place_of: Callable[[str, bytes, int], Place | None],
        now_ms: Callable[[], int],
        is_open: Callable[[int], bool],
    ) -> None:
        self.findings = Findings()
        self._place_of = place_of
        self._now_ms = now_ms
        self._fetches = Fetches()
        self._sends = Sends(self._find, now_ms, is_open)
        self._refusals = Refusals(self._find)
        self._shared = SharedRecords(self._find)
        self._committed: Remembered[tuple[str, Place], int] = Remembered(MOST_OFFSETS)
        self._members: Remembered[tuple[str, str], Who] = Remembered(MOST_MEMBERS)
        self._of_members: Remembered[tuple[str, int], bool] = Remembered(MOST_MEMBERS)
        """By group and connection: a member has asked by it."""
        self._transactions: Remembered[str, _Transaction] = Remembered(MOST_TRANSACTIONS)
        self._pending = 0
        """Commits in all transactions that are open."""
        self._in_transactions: Remembered[str, str] = Remembered(MOST_OFFSETS)
        """By group: the transactional id that has committed offsets for it."""
        self._outputs: Remembered[Who, str] = Remembered(MOST_TRANSACTIONS)
        """The transactional ids whose transactions have records and are open."""

    def asks(self, number: int, who: Who, api_key: int, message: Any) -> Asked:
        """Look at a request before the broker does. number: of its connection. message: None if it is not audited."""
        batches: Sequence[Batch] = ()
        if api_key == ApiKey.API_VERSIONS:
            self._fetches.came(number, who)
        else:
            self._fetches.was_there(number, who)
        match api_key:
            case ApiKey.FETCH:
                for place, partition in self._partitions(message.topics, "partition"):
                    self._fetches.asked(number, place, partition.fetch_offset)
            case ApiKey.PRODUCE:
                if message.transactional_id:
                    self._transaction(who, message.transactional_id)
                    self._outputs.put(who, message.transactional_id)
                batches, message = self._batches(who, message), None
            case (
                ApiKey.SYNC_GROUP
                | ApiKey.HEARTBEAT
                | ApiKey.CONSUMER_GROUP_HEARTBEAT
                | ApiKey.STREAMS_GROUP_HEARTBEAT
                | ApiKey.OFFSET_COMMIT
            ):
                if message.member_id:
                    self._members.put((message.group_id, message.member_id), who)
                    self._of_members.put((message.group_id, number), True)
        return Asked(number, who, api_key, message, batches)

    def answered(self, asked: Asked, answer: Any) -> None:
        """Look at what became of a request. answer: None where the client has had none."""
        request: Any = asked.message
        if asked.batches:
            self._sends.answered(asked.number, asked.batches, self._errors_of_produce(answer))
        if request is None or answer is None:
            return
        match asked.api_key:
            case ApiKey.FETCH:
                for place, partition in self._partitions(answer.responses, "partition_index"):
                    if partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        self._fetches.was_out_of_range(asked.who, place)
                    records = partition.records
                    end = end_of_records(records) if records else None
                    self._fetches.got(asked.number, asked.who, place, end, partition.log_start_offset)
            case ApiKey.SHARE_FETCH | ApiKey.SHARE_ACKNOWLEDGE:
                self._shares(asked, request, answer)
            case ApiKey.OFFSET_COMMIT:
                self._commits(asked, request, answer)
            case ApiKey.OFFSET_FETCH:
                self._learns(asked, request, answer)
            case ApiKey.TXN_OFFSET_COMMIT:
                self._commits_in_transaction(asked, request, answer)
            case ApiKey.INIT_PRODUCER_ID:
                self._begins_anew(request, answer)
            case ApiKey.END_TXN:
                self._ends(asked, request, answer)
            case ApiKey.DELETE_GROUPS:
                gone = {each.group_id for each in answer.results if not each.error_code}
                self._committed.forget_where(lambda key: key[0] in gone)
                self._in_transactions.forget_where(gone.__contains__)
            case ApiKey.OFFSET_DELETE:
                for place, _ in self._partitions(answer.topics, "partition_index"):
                    self._committed.forget((request.group_id, place))

    # ---- what consumers commit

    def _commits(self, asked: Asked, request: Any, answer: Any) -> None:
        group = request.group_id
        is_member = request.generation_id_or_member_epoch >= 0 and bool(request.member_id)
        offsets = dict(self._partitions(request.topics, "partition_index"))
        has_advanced = False
        for place, partition in self._partitions(answer.topics, "partition_index"):
            wanted = offsets.get(place)
            if wanted is None:
                continue
            if partition.error_code in NO_MEMBER or partition.error_code in BEHIND:
                member, error = request.member_id, partition.error_code
                offset = wanted.committed_offset
                self._refusals.refused(Refusal(asked.number, asked.who, group, member, place, offset, error))
            if partition.error_code:
                continue
            self._refusals.committed(group, place, wanted.committed_offset)
            before = self._committed.get((group, place))
            has_advanced |= before is None or wanted.committed_offset > before
            self._moves(asked.who, group, place, wanted.committed_offset, is_member=is_member)
        if has_advanced and is_member:
            self._is_outside(asked.who, group)

    def _moves(self, who: Who, group: str, place: Place, offset: int, *, is_member: bool) -> None:
        """Look at a commit that has been taken. is_member: surely not by a tool."""
        key = group, place
        before = self._committed.get(key)
        self._committed.put(key, offset)
        is_reset = self._fetches.take_out_of_range(who, place)
        if before is None or offset == before:
            return
        if offset < before:
            if is_member and not is_reset:
                self._find(
                    Kind.REWIND,
                    f"{who} has committed {offset} for {place} in group {group}, where {before} was committed: "
                    "records in between are read again",
                    {"group": group, **of_client_at(who, place), "committed": before, "offset": offset},
                )
            return
        missing = self._fetches.first_missing(who, place, before, offset)
        if missing is not None and (is_member or who.is_named):
            first, end = missing
            deleted = " (the log begins behind them)" if self._fetches.log_start(place) >= end else ""
            self._find(
                Kind.JUMP,
                f"{who} has committed {offset} for {place} in group {group}, where {before} was committed, and was "
                f"never sent the offsets {first} to {end - 1}{deleted}",
                {
                    "group": group,
                    **of_client_at(who, place),
                    "committed": before,
                    "offset": offset,
                    "first_missing": first,
                    "last_missing": end - 1,
                    "are_deleted": bool(deleted),
                },
            )

    def _learns(self, asked: Asked, request: Any, answer: Any) -> None:
        """An OffsetFetch tells what is committed."""
        groups = answer.groups or []
        found = [(each.group_id, each.topics) for each in groups if not each.error_code]
        if not groups and not answer.error_code:
            found = [(request.group_id, answer.topics)]
        for group, topics in found:
            for place, partition in self._partitions(topics, "partition_index"):
                if partition.error_code:
                    continue
                if self._of_members.get((group, asked.number)):
                    self._refusals.begins(asked.number, asked.who, group, place, partition.committed_offset)
                if partition.committed_offset >= 0:
                    self._committed.put((group, place), partition.committed_offset)
                else:
                    self._committed.forget((group, place))

    # ---- what members of share groups acknowledge

    def _shares(self, asked: Asked, request: Any, answer: Any) -> None:
        """Look at the acknowledgements of a ShareFetch or ShareAcknowledge, and at what a ShareFetch hands out."""
        group, is_fetch = request.group_id or "", asked.api_key == ApiKey.SHARE_FETCH
        answered = dict(self._partitions(answer.responses, "partition_index"))
        for place, partition in self._partitions(request.topics, "partition_index"):
            error = answer.error_code
            if not error and (told := answered.get(place)) is not None:
                error = told.acknowledge_error_code if is_fetch else told.error_code
            if error in LOST:
                for offsets in newest(settled(partition.acknowledgement_batches)):
                    late = LateAcknowledgement(asked.who, group, request.member_id or "", place, offsets, error)
                    self._shared.refused(late)
        if is_fetch:
            for place, partition in answered.items():
                self._shared.delivered(group, place, partition.acquired_records)

    # ---- transactions

    def _commits_in_transaction(self, asked: Asked, request: Any, answer: Any) -> None:
        group = request.group_id
        who = self._members.get((group, request.member_id)) if request.member_id else None
        transaction = self._transaction(asked.who, request.transactional_id)
        if len(transaction.groups) < MOST_GROUPS_OF_ONE:
            transaction.groups.add(group)
        self._in_transactions.put(group, request.transactional_id)
        offsets = dict(self._partitions(request.topics, "partition_index"))
        for place, partition in self._partitions(answer.topics, "partition_index"):
            wanted = offsets.get(place)
            if wanted is None:
                continue
            if partition.error_code in NO_MEMBER:  # with others the transaction is aborted, and begun again
                member, error, offset = request.member_id, partition.error_code, wanted.committed_offset
                self._refusals.refused(Refusal(asked.number, who or asked.who, group, member, place, offset, error))
            elif not partition.error_code and self._pending < MOST_COMMITS_PENDING:
                self._pending += (group, place) not in transaction.commits
                transaction.commits[group, place] = wanted.committed_offset, request.member_id

    def _begins_anew(self, request: Any, answer: Any) -> None:
        """A producer that begins anew has what was open aborted, unless it asks to keep it (KIP-939)."""
        if not answer.error_code and request.transactional_id and not request.keep_prepared_txn:
            self._gives_up(request.transactional_id)

    def _gives_up(self, transactional_id: str) -> None:
        transaction = self._transactions.get(transactional_id)
        if transaction is not None:
            self._closes(transaction, transactional_id)

    def _ends(self, asked: Asked, request: Any, answer: Any) -> None:
        if answer.error_code in NO_MEMBER:  # another producer has taken over
            self._gives_up(request.transactional_id)
        transaction = self._transactions.get(request.transactional_id)
        if answer.error_code or transaction is None:
            return
        commits = self._closes(transaction, request.transactional_id)
        if request.committed:
            for (group, place), (offset, member) in commits.items():
                who = self._members.get((group, member)) if member else None
                self._moves(who or asked.who, group, place, offset, is_member=bool(member))

    def _is_outside(self, who: Who, group: str) -> None:
        """A commit without a transaction: does the group, or this client, have transactions?"""
        transactional_id = self._in_transactions.get(group)
        if transactional_id is not None:
            self._find(
                Kind.OUTSIDE,
                f"{who} has committed offsets of group {group} outside of any transaction, and transactional id "
                f"{transactional_id} commits offsets of this group inside: after an abort they do not fit the outputs",
                {"group": group, "host": who.host, "client_id": who.client_id, "transactional_id": transactional_id},
            )
            return
        transactional_id = self._outputs.get(who) if who.is_named else None
        transaction = None if transactional_id is None else self._transactions.get(transactional_id)
        if transaction is not None:
            transaction.beside = group

    def _closes(self, transaction: _Transaction, transactional_id: str) -> Mapping[tuple[str, Place], tuple[int, str]]:
        """Return the offsets of a transaction that has ended: now it is known whether it has any."""
        commits, transaction.commits = transaction.commits, {}
        self._pending -= len(commits)
        who, group, transaction.beside = transaction.who, transaction.beside, ""
        self._outputs.forget(who)
        if group and not transaction.groups:
            self._find(
                Kind.OUTSIDE,
                f"{who} has committed offsets of group {group} while its transaction {transactional_id} was open, "
                "which has records and no offsets: after an abort the inputs are lost, after a crash they come twice",
                {"group": group, "host": who.host, "client_id": who.client_id, "transactional_id": transactional_id},
            )
        return commits

    def _transaction(self, who: Who, transactional_id: str) -> _Transaction:
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            transaction = _Transaction(who)
            gone = self._transactions.put(transactional_id, transaction)
            self._pending -= 0 if gone is None else len(gone.commits)
        transaction.who = who
        return transaction

    # ---- what producers send

    def _batches(self, who: Who, request: Any) -> list[Batch]:
        """Return what may be sent twice: with acks=0 no client tries again."""
        found: list[Batch] = []
        for topic in request.topic_data if request.acks else []:
            for partition in topic.partition_data:
                place = self._place_of(topic.name, bytes(topic.topic_id or NO_UUID), partition.index)
                batch = None if place is None or not partition.records else batch_of(who, place, partition.records)
                if batch is not None:
                    found.append(batch)
        return found

    def _errors_of_produce(self, answer: Any) -> dict[Place, tuple[int, int]] | None:
        """Return error code and base offset of each partition; None without an answer."""
        if answer is None:
            return None
        found = {}
        for topic in answer.responses:
            for partition in topic.partition_responses:
                place = self._place_of(topic.name, bytes(topic.topic_id or NO_UUID), partition.index)
                if place is not None:
                    found[place] = partition.error_code, partition.base_offset
        return found

    # ---- common

    def _partitions(self, topics: Any, index: str) -> Iterator[tuple[Place, Any]]:
        for topic in topics or []:
            name = getattr(topic, "name", None) or getattr(topic, "topic", None) or ""
            topic_id = bytes(getattr(topic, "topic_id", None) or NO_UUID)
            for partition in topic.partitions:
                place = self._place_of(name, topic_id, getattr(partition, index))
                if place is not None:
                    yield place, partition

    def _find(self, kind: Kind, text: str, facts: dict[str, Any]) -> None:
        self.findings.add(Finding(kind, text, self._now_ms(), facts))

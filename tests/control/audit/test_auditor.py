"""The auditor finds what loses or repeats records, and nothing where clients do as they should."""

from __future__ import annotations

from typing import Any

import pytest

from pykbroker.control.audit import auditor, fetches, findings
from pykbroker.control.audit.auditor import Auditor
from pykbroker.control.audit.findings import Kind
from pykbroker.control.audit.who import Place, Who
from pykbroker.protocol.api_keys import ApiKey, request_type, response_type
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import fetch, group_admin, group_offsets, groups, produce, transactions
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.schema import Struct

TOPIC = "orders"
GROUP = "billing"
APP = Who("127.0.0.1", "app")
OTHER = Who("127.0.0.1", "other")
TOOL = Who("127.0.0.1", "tool")
PLACE = Place(b"\1" * 16, TOPIC, 0)


def place_of(name: str, topic_id: bytes, partition: int) -> Place | None:
    return PLACE._replace(partition=partition) if name == TOPIC or topic_id == PLACE.topic_id else None


def made(kind: type[Struct], **fields: Any) -> Any:
    message = kind()
    for name, value in fields.items():
        setattr(message, name, value)
    return message


class Wire:
    """Clients of an audited broker, each with one connection. Clients open it, unless they were there before."""

    def __init__(self) -> None:
        self._numbers: dict[Who, int] = {}
        self.now_ms = 7
        self.auditor = Auditor(place_of, lambda: self.now_ms, lambda number: number in self._numbers.values())

    @property
    def found(self) -> list[Kind]:
        return [each.kind for each in self.auditor.findings]

    @property
    def text(self) -> str:
        (finding,) = self.auditor.findings
        return finding.text

    def opens(self, who: Who, number: int | None = None) -> None:
        """Open a connection, in place of the one before."""
        self._numbers[who] = len(self._numbers) + 1 if number is None else number
        self.auditor.asks(self._numbers[who], who, ApiKey.API_VERSIONS, None)

    def exchange(self, who: Who, api: ApiKey, request: Any, answer: Any) -> None:
        asked = self.auditor.asks(self._numbers.setdefault(who, 1000 + len(self._numbers)), who, api, request)
        self.auditor.answered(asked, answer)

    def fetches(self, who: Who, offset: int | None, end: int, log_start: int = 0) -> None:
        """Fetch at an offset, and get what is below `end`. offset: None in a session that knows it."""
        count = end - (offset or 0)
        records = encode_batch([Record(None, b"x")] * count, base_offset=end - count) if count > 0 else b""
        partition = made(fetch.FetchPartition, partition=0, fetch_offset=offset)
        topics = [] if offset is None else [made(fetch.FetchTopic, topic=TOPIC, partitions=[partition])]
        got = made(fetch.PartitionData, partition_index=0, records=records, log_start_offset=log_start)
        responses = [made(fetch.FetchableTopicResponse, topic=TOPIC, partitions=[got])]
        request = made(fetch.FetchRequest, topics=topics)
        self.exchange(who, ApiKey.FETCH, request, made(fetch.FetchResponse, responses=responses))

    def commits(self, who: Who, offset: int, member: str = "m", error: ErrorCode = ErrorCode.NONE) -> None:
        partition = made(group_offsets.OffsetCommitRequestPartition, partition_index=0, committed_offset=offset)
        topic = made(group_offsets.OffsetCommitRequestTopic, name=TOPIC, partitions=[partition])
        request = made(
            group_offsets.OffsetCommitRequest,
            group_id=GROUP,
            member_id=member,
            generation_id_or_member_epoch=1 if member else -1,
            topics=[topic],
        )
        result = made(group_offsets.OffsetCommitResponsePartition, partition_index=0, error_code=error)
        answered = made(group_offsets.OffsetCommitResponseTopic, name=TOPIC, partitions=[result])
        self.exchange(who, ApiKey.OFFSET_COMMIT, request, made(group_offsets.OffsetCommitResponse, topics=[answered]))

    def joins(self, who: Who, member: str = "m") -> None:
        request = made(groups.SyncGroupRequest, group_id=GROUP, member_id=member, generation_id=1)
        self.exchange(who, ApiKey.SYNC_GROUP, request, made(groups.SyncGroupResponse))

    def asks_for_offsets(self, who: Who, committed: int) -> None:
        partition = made(group_offsets.OffsetFetchResponsePartitions, partition_index=0, committed_offset=committed)
        topic = made(group_offsets.OffsetFetchResponseTopics, name=TOPIC, partitions=[partition])
        answer = made(
            group_offsets.OffsetFetchResponse,
            groups=[made(group_offsets.OffsetFetchResponseGroup, group_id=GROUP, topics=[topic])],
        )
        self.exchange(who, ApiKey.OFFSET_FETCH, made(group_offsets.OffsetFetchRequest), answer)

    def commits_in_transaction(
        self, who: Who, offset: int, member: str = "m", error: int = 0, transactional_id: str = "copies"
    ) -> None:
        partition = made(transactions.TxnOffsetCommitRequestPartition, partition_index=0, committed_offset=offset)
        topic = made(transactions.TxnOffsetCommitRequestTopic, name=TOPIC, partitions=[partition])
        request = made(
            transactions.TxnOffsetCommitRequest,
            transactional_id=transactional_id,
            group_id=GROUP,
            member_id=member,
            topics=[topic],
        )
        result = made(transactions.TxnOffsetCommitResponsePartition, partition_index=0, error_code=error)
        answered = made(transactions.TxnOffsetCommitResponseTopic, name=TOPIC, partitions=[result])
        answer = made(transactions.TxnOffsetCommitResponse, topics=[answered])
        self.exchange(who, ApiKey.TXN_OFFSET_COMMIT, request, answer)

    def begins_anew(self, who: Who, *, keeps: bool = False) -> None:
        request = made(transactions.InitProducerIdRequest, transactional_id="copies", keep_prepared_txn=keeps)
        self.exchange(who, ApiKey.INIT_PRODUCER_ID, request, made(transactions.InitProducerIdResponse))

    def ends_transaction(
        self, who: Who, *, committed: bool, error: ErrorCode = ErrorCode.NONE, transactional_id: str = "copies"
    ) -> None:
        request = made(transactions.EndTxnRequest, transactional_id=transactional_id, committed=committed)
        self.exchange(who, ApiKey.END_TXN, request, made(transactions.EndTxnResponse, error_code=error))

    def sends(
        self,
        who: Who,
        value: bytes = b"x",
        *,
        error: int | None = 0,
        at: int = 0,
        producer_id: int = -1,
        acks: int = -1,
        transactional_id: str | None = None,
        timestamp: int = 5,
    ) -> None:
        """Produce a batch. error: None for no answer."""
        records = encode_batch([Record(None, value, timestamp=timestamp)], producer_id=producer_id)
        partition = made(produce.PartitionProduceData, index=0, records=records)
        topic = made(produce.TopicProduceData, name=TOPIC, partition_data=[partition])
        request = made(produce.ProduceRequest, transactional_id=transactional_id, acks=acks, topic_data=[topic])
        result = made(produce.PartitionProduceResponse, index=0, error_code=error or 0, base_offset=at)
        answered = made(produce.TopicProduceResponse, name=TOPIC, partition_responses=[result])
        answer = None if error is None else made(produce.ProduceResponse, responses=[answered])
        self.exchange(who, ApiKey.PRODUCE, request, answer)


@pytest.fixture
def wire() -> Wire:
    wire = Wire()
    wire.opens(APP)
    wire.opens(OTHER)
    wire.opens(TOOL)
    return wire


def test_a_client_that_commits_what_it_was_sent_is_good(wire: Wire) -> None:
    wire.asks_for_offsets(APP, -1)
    wire.fetches(APP, 0, 10)
    wire.commits(APP, 5)
    wire.commits(APP, 5)
    wire.fetches(APP, 10, 20)
    wire.fetches(APP, 20, 20)
    wire.commits(APP, 20)
    wire.asks_for_offsets(OTHER, 20)
    wire.fetches(OTHER, 20, 30)
    wire.commits(OTHER, 30)
    assert wire.found == []


def test_a_commit_over_offsets_that_were_never_sent_is_found(wire: Wire) -> None:
    wire.asks_for_offsets(APP, 3)
    wire.fetches(APP, 3, 5)
    wire.fetches(APP, 8, 9)
    wire.commits(APP, 9)
    assert wire.found == [Kind.JUMP]
    assert wire.text == (
        "client app of 127.0.0.1 has committed 9 for orders-0 in group billing, where 3 was committed, "
        "and was never sent the offsets 5 to 7"
    )


def test_what_another_client_was_sent_does_not_count(wire: Wire) -> None:
    wire.fetches(APP, 0, 10)
    wire.commits(APP, 10)
    wire.fetches(OTHER, 20, 30)
    wire.fetches(APP, 10, 20)
    wire.commits(OTHER, 30)
    assert wire.found == [Kind.JUMP]


def test_offsets_that_retention_took_are_told_as_such(wire: Wire) -> None:
    wire.asks_for_offsets(APP, 0)
    wire.fetches(APP, 50, 60, log_start=50)
    wire.commits(APP, 60)
    assert wire.text.endswith("was never sent the offsets 0 to 49 (the log begins behind them)")


def test_a_fetch_session_does_not_repeat_where_it_stands(wire: Wire) -> None:
    wire.asks_for_offsets(APP, 0)
    wire.fetches(APP, 0, 0)
    wire.fetches(APP, None, 10)
    wire.commits(APP, 10)
    assert wire.found == []


def test_who_was_there_before_the_audit_may_have_fetched_before() -> None:
    wire = Wire()
    wire.asks_for_offsets(APP, 0)
    wire.fetches(APP, 10, 20)
    wire.commits(APP, 20)
    assert wire.found == []


def test_who_was_there_before_may_share_its_id_with_somebody_new() -> None:
    wire = Wire()
    wire.opens(APP, number=1)  # a producer, say
    wire.sends(APP)
    old = 5
    wire.opens(APP, number=old)
    wire.auditor = Auditor(place_of, lambda: 7, lambda number: True)
    wire.auditor.asks(1, APP, ApiKey.API_VERSIONS, None)
    wire.commits(APP, 3)
    wire.fetches(APP, 10, 12)
    wire.commits(APP, 12)
    assert wire.found == []


def test_what_came_in_a_session_of_before_counts() -> None:
    wire = Wire()
    wire.commits(APP, 3)
    wire.fetches(APP, None, 12)
    wire.fetches(APP, 12, 20)
    wire.commits(APP, 20)
    assert wire.found == []


def test_where_something_was_forgotten_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetches, "MOST_RANGES_KEPT", 1)
    wire = Wire()
    wire.opens(APP)
    wire.opens(OTHER)
    wire.commits(APP, 0)
    wire.fetches(APP, 0, 10)
    wire.fetches(OTHER, 0, 10)
    wire.fetches(APP, 10, 20)
    wire.commits(APP, 20)
    assert wire.found == []


def test_a_tool_of_a_librarys_own_id_is_no_finding() -> None:
    wire = Wire()
    library = Who("h", "pykbroker-testing")
    wire.opens(library)
    wire.fetches(library, 0, 10)
    wire.commits(library, 1, member="")
    wire.commits(library, 20, member="")
    assert wire.found == []


def test_a_tool_that_resets_offsets_is_no_finding(wire: Wire) -> None:
    wire.fetches(APP, 0, 10)
    wire.commits(APP, 10)
    wire.commits(TOOL, 2, member="")
    wire.commits(TOOL, 100, member="")
    wire.commits(TOOL, 2, member="")
    assert wire.found == []


def test_a_commit_backwards_is_found(wire: Wire) -> None:
    wire.fetches(APP, 0, 10)
    wire.commits(APP, 10)
    wire.commits(APP, 4)
    assert wire.found == [Kind.REWIND]
    assert "has committed 4 for orders-0 in group billing, where 10 was committed" in wire.text


def test_a_log_that_has_lost_its_end_sends_its_readers_back(wire: Wire) -> None:
    wire.fetches(APP, 0, 10)
    wire.commits(APP, 10)
    got = made(fetch.PartitionData, partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=-1)
    responses = [made(fetch.FetchableTopicResponse, topic=TOPIC, partitions=[got])]
    wire.exchange(APP, ApiKey.FETCH, made(fetch.FetchRequest), made(fetch.FetchResponse, responses=responses))
    wire.commits(APP, 4)
    assert wire.found == []
    wire.commits(APP, 3)
    assert wire.found == [Kind.REWIND]


def test_offsets_that_are_gone_are_no_measure(wire: Wire) -> None:
    wire.commits(APP, 10)
    gone = made(group_admin.DeletableGroupResult, group_id=GROUP)
    answer = made(group_admin.DeleteGroupsResponse, results=[gone])
    wire.exchange(TOOL, ApiKey.DELETE_GROUPS, made(group_admin.DeleteGroupsRequest), answer)
    wire.commits(APP, 4)
    wire.asks_for_offsets(APP, -1)
    wire.commits(APP, 2)
    assert wire.found == []


def test_a_group_that_is_made_again_need_not_have_transactions(wire: Wire) -> None:
    wire.fetches(APP, 0, 10)
    wire.commits_in_transaction(OTHER, 5)
    wire.ends_transaction(OTHER, committed=True)
    gone = made(group_admin.DeletableGroupResult, group_id=GROUP)
    answer = made(group_admin.DeleteGroupsResponse, results=[gone])
    wire.exchange(TOOL, ApiKey.DELETE_GROUPS, made(group_admin.DeleteGroupsRequest), answer)
    wire.commits(APP, 10)
    assert wire.found == []


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID])
def test_a_commit_of_who_is_no_member_any_more_is_found(wire: Wire, error: ErrorCode) -> None:
    wire.commits(APP, 10, error=error)
    assert wire.found == [Kind.ZOMBIE]
    assert error.name in wire.text


@pytest.mark.parametrize("error", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_commit_of_who_missed_a_rebalance_is_found_where_another_one_reads_on(
    wire: Wire, error: ErrorCode, is_late: bool
) -> None:
    wire.joins(APP)
    wire.asks_for_offsets(APP, 5)
    if is_late:
        wire.commits(APP, 10, error=error)
        assert wire.found == []
    wire.asks_for_offsets(TOOL, 5)  # to tell a lag
    assert wire.found == []
    wire.joins(OTHER, "n")
    wire.asks_for_offsets(OTHER, 5)
    if not is_late:
        wire.commits(APP, 10, error=error)
    assert wire.found == [Kind.ZOMBIE]
    assert "client other of 127.0.0.1 has it from 5 on" in wire.text


def test_a_member_that_missed_a_rebalance_and_has_its_partitions_still_is_good(wire: Wire) -> None:
    wire.joins(APP)
    wire.asks_for_offsets(APP, 5)
    wire.fetches(APP, 0, 20)
    wire.commits(APP, 10, error=ErrorCode.STALE_MEMBER_EPOCH)
    wire.asks_for_offsets(APP, 5)
    wire.opens(APP, number=99)
    wire.joins(APP)
    wire.commits(APP, 10, error=ErrorCode.ILLEGAL_GENERATION)
    wire.asks_for_offsets(APP, 5)
    wire.commits(APP, 10, error=ErrorCode.ILLEGAL_GENERATION)
    wire.commits(APP, 12)
    wire.joins(OTHER, "n")
    wire.asks_for_offsets(OTHER, 12)
    assert wire.found == []


def test_a_transaction_that_a_rebalance_refuses_is_begun_again(wire: Wire) -> None:
    wire.joins(APP)
    wire.asks_for_offsets(APP, 0)
    wire.commits_in_transaction(OTHER, 10, error=ErrorCode.ILLEGAL_GENERATION)
    wire.ends_transaction(OTHER, committed=False)
    wire.asks_for_offsets(APP, 0)
    assert wire.found == []
    wire.commits_in_transaction(OTHER, 10, error=ErrorCode.UNKNOWN_MEMBER_ID)
    assert wire.found == [Kind.ZOMBIE]


def test_a_commit_that_is_refused_for_the_time_being_is_none(wire: Wire) -> None:
    wire.commits(APP, 10, error=ErrorCode.REBALANCE_IN_PROGRESS)
    wire.commits(APP, 10, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    wire.commits(APP, 5)
    assert wire.found == []


def test_offsets_of_a_transaction_count_when_it_is_committed(wire: Wire) -> None:
    wire.fetches(APP, 0, 10)
    wire.commits(APP, 0)
    wire.sends(OTHER, producer_id=4, transactional_id="copies")
    wire.commits_in_transaction(OTHER, 10)
    wire.ends_transaction(OTHER, committed=False)
    wire.commits_in_transaction(OTHER, 5)
    wire.ends_transaction(OTHER, committed=True)
    assert wire.found == []
    wire.commits_in_transaction(OTHER, 20)
    wire.ends_transaction(OTHER, committed=True)
    assert wire.found == [Kind.JUMP]
    assert "client app" in wire.text  # who fetched, not whose transaction it is


@pytest.mark.parametrize("ends", ["begins anew", "is fenced"])
def test_offsets_of_a_transaction_that_was_given_up_do_not_count(wire: Wire, ends: str) -> None:
    wire.commits(APP, 0)
    wire.sends(APP, producer_id=4, transactional_id="copies")
    wire.commits_in_transaction(APP, 10)
    if ends == "begins anew":
        wire.begins_anew(APP)
    else:
        wire.ends_transaction(APP, committed=True, error=ErrorCode.PRODUCER_FENCED)
    wire.ends_transaction(APP, committed=True)
    wire.commits_in_transaction(APP, 5)
    wire.ends_transaction(APP, committed=True)
    assert wire.found == []


def test_the_offsets_of_open_transactions_are_so_many_in_all(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "MOST_COMMITS_PENDING", 2)
    monkeypatch.setattr(auditor, "MOST_TRANSACTIONS", 3)
    wire = Wire()
    for number in range(10):
        wire.commits_in_transaction(APP, 10, transactional_id=f"t{number}")
        kept = sum(len(each.commits) for each in wire.auditor._transactions._entries.values())
        assert 1 <= kept == wire.auditor._pending <= 2
    wire.commits_in_transaction(APP, 10, transactional_id="one more")
    wire.commits_in_transaction(APP, 11, transactional_id="one more")
    wire.ends_transaction(APP, committed=True, transactional_id="one more")
    wire.commits(APP, 5)
    assert wire.found[:1] == [Kind.REWIND]


def test_a_prepared_transaction_that_is_kept_counts(wire: Wire) -> None:
    wire.commits_in_transaction(APP, 10)
    wire.begins_anew(APP, keeps=True)
    wire.ends_transaction(APP, committed=True)
    wire.commits(APP, 5)
    assert wire.found[:1] == [Kind.REWIND]


def test_offsets_inside_and_outside_of_transactions_are_found(wire: Wire) -> None:
    wire.fetches(APP, 0, 10)
    wire.commits_in_transaction(OTHER, 5)
    wire.ends_transaction(OTHER, committed=True)
    wire.commits(APP, 10)
    assert wire.found == [Kind.OUTSIDE]
    assert "transactional id copies commits offsets of this group inside" in wire.text


def test_offsets_beside_an_open_transaction_of_the_same_client_are_found(wire: Wire) -> None:
    wire.fetches(APP, 0, 10)
    wire.sends(APP, producer_id=4, transactional_id="copies")
    wire.commits(APP, 10)
    assert wire.found == []  # its offsets may come yet, and these may be those of another group
    wire.ends_transaction(APP, committed=True)
    assert wire.found == [Kind.OUTSIDE]
    assert "while its transaction copies was open" in wire.text


def test_a_client_that_has_a_group_beside_its_transactions_is_good(wire: Wire) -> None:
    wire.sends(APP, producer_id=4, transactional_id="copies")
    wire.commits(APP, 10)
    request = made(transactions.TxnOffsetCommitRequest, transactional_id="copies", group_id="of-copies", topics=[])
    wire.exchange(APP, ApiKey.TXN_OFFSET_COMMIT, request, made(transactions.TxnOffsetCommitResponse, topics=[]))
    wire.ends_transaction(APP, committed=True)
    assert wire.found == []


def test_a_transaction_that_has_ended_is_no_finding(wire: Wire) -> None:
    wire.fetches(APP, 0, 10)
    wire.sends(APP, producer_id=4, transactional_id="copies")
    wire.ends_transaction(APP, committed=True)
    wire.commits(APP, 10)
    wire.sends(OTHER, producer_id=4, transactional_id="copies")
    wire.commits(APP, 10)
    assert wire.found == []


def test_librarys_own_client_ids_are_shared_by_strangers() -> None:
    wire = Wire()
    wire.fetches(Who("h", "rdkafka"), 0, 10)
    wire.sends(Who("h", "rdkafka"), producer_id=4, transactional_id="copies")
    wire.commits(Who("h", "rdkafka"), 10)
    assert wire.found == []


def test_a_batch_that_is_sent_again_on_another_connection_is_found(wire: Wire) -> None:
    wire.sends(APP, at=3)
    wire.opens(APP, number=99)
    wire.now_ms += 30_000
    wire.sends(APP, at=4)
    assert wire.found == [Kind.DUPLICATE]
    assert wire.text == (
        "client app of 127.0.0.1 has sent a record to orders-0 twice, without idempotence, in the log at 3 and at 4"
    )


@pytest.mark.parametrize("error", [None, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND])
def test_a_batch_whose_fate_is_unknown_and_that_is_sent_again_is_found(wire: Wire, error: int | None) -> None:
    wire.sends(APP, error=error, at=-1)
    wire.sends(APP, at=4)
    assert wire.found == [Kind.DUPLICATE]


def test_a_batch_that_was_refused_and_is_sent_again_is_good(wire: Wire) -> None:
    wire.sends(APP, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    wire.sends(APP)
    assert wire.found == []


def test_other_batches_are_no_duplicates(wire: Wire) -> None:
    wire.sends(APP, b"a")
    wire.sends(APP, b"a")  # by a program that says the same twice, and had its answer
    wire.sends(OTHER, b"a")
    wire.sends(APP, b"i", producer_id=5, error=None)
    wire.sends(APP, b"i", producer_id=5)
    wire.sends(APP, b"0", acks=0, error=None)
    wire.sends(APP, b"0", acks=0, error=None)
    assert wire.found == []


def test_two_producers_of_one_client_id_that_send_the_same_are_good() -> None:
    wire = Wire()
    one, other = Who("h", "app"), Who("h", "app")
    wire.auditor.asks(1, one, ApiKey.API_VERSIONS, None)
    wire.opens(one, number=1)
    wire.sends(one)
    wire._numbers[Who("h", "somebody")] = 1  # the connection stays
    wire.opens(other, number=2)
    wire.now_ms += 30_000
    wire.sends(other)
    assert wire.found == []


def test_a_producer_that_ends_and_one_that_sends_the_same_just_then_are_good(wire: Wire) -> None:
    wire.sends(APP)
    wire.opens(APP, number=99)
    wire.now_ms += 100
    wire.sends(APP)
    nameless = Who("h", "rdkafka")
    wire.opens(nameless)
    wire.sends(nameless)
    wire.opens(nameless, number=100)
    wire.now_ms += 30_000
    wire.sends(nameless)
    assert wire.found == []


def test_a_timestamp_of_the_programs_own_tells_no_retry(wire: Wire) -> None:
    wire.sends(APP, timestamp=-3_600_000)
    wire.opens(APP, number=99)
    wire.now_ms += 30_000
    wire.sends(APP, timestamp=-3_600_000)
    assert wire.found == []


def test_findings_are_counted_and_the_first_are_kept(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "MOST_FINDINGS", 3)
    for offset in range(100, 90, -1):
        wire.commits(APP, offset)
    assert len(wire.auditor.findings) == 9
    assert len(wire.found) == 3
    assert wire.auditor.findings.counts == {Kind.REWIND: 9}
    assert next(iter(wire.auditor.findings)).as_json()["kind"] == "commit-rewind"


def test_all_that_is_audited_has_a_request_and_a_response() -> None:
    from pykbroker.control.audit.auditor import AUDITED

    assert all(request_type(key) and response_type(key) for key in AUDITED)

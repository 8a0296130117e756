"""Differences that are meant: each has a name and a reason, and says which cases it covers (docs/differential.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.protocol.api_keys import ApiKey

from .asking import WAITS
from .comparison import NOTHING, FieldDifference
from .field_values import LARGE
from .sequences import CONTROLLER, Step

_PRODUCE_BY_ID: Final = 13
_LOGGERS: Final = 8
_SECOND_PROTOCOL: Final = 5
"""The version of EndTxn (KIP-890)."""

Covers = Callable[[Step, FieldDifference], bool]


@dataclass(frozen=True, slots=True)
class Intended:
    """ends: what follows in the sequence is not compared, since the brokers have other states from there on."""

    name: str
    reason: str
    covers: Covers
    ends: bool = False


def _is_wording(_: Step, found: FieldDifference) -> bool:
    field = found.path.rpartition(".")[2]
    texts = (found.theirs, found.ours)
    return field.endswith(("error_message", "documentation")) and all(
        isinstance(each, str) and each != NOTHING for each in texts
    )


def _is_features(step: Step, found: FieldDifference) -> bool:
    return step.api_key == ApiKey.API_VERSIONS and found.path.split(".")[0] in (
        "api_keys",
        "supported_features",
        "finalized_features",
    )


def _is_answered_by_controllers(step: Step, _: FieldDifference) -> bool:
    of_controllers = (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_DELEGATION_TOKEN)
    return step.listener == CONTROLLER and step.api_key in of_controllers


def _is_unreadable_subscription(step: Step, found: FieldDifference) -> bool:
    if step.api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
        return found.theirs in ("UNKNOWN_SERVER_ERROR", NOTHING) and (
            found.ours == "GROUP_ID_NOT_FOUND" or "protocol is malformed" in str(found.ours)
        )
    if step.api_key != ApiKey.JOIN_GROUP:
        return False
    protocols = step.tree.get("protocols") or ()
    return found.ours == "INCONSISTENT_GROUP_PROTOCOL" or any(each["metadata"] != "m" for each in protocols)


def _is_left_by_a_refused_join(step: Step, found: FieldDifference) -> bool:
    """A group that is there on one broker and not on the other."""
    field = found.path.rpartition(".")[2]
    gone = ("GROUP_ID_NOT_FOUND", "Dead")
    match ApiKey(step.api_key):
        case ApiKey.DESCRIBE_GROUPS:
            is_text = field == "error_message" and NOTHING in (found.theirs, found.ours)
            return is_text or found.theirs in gone or found.ours in gone
        case ApiKey.DELETE_GROUPS:
            return {found.theirs, found.ours} == {"NONE", "GROUP_ID_NOT_FOUND"}
        case ApiKey.LIST_GROUPS:
            return found.path == "groups"
    return False


def _is_transaction_twice(step: Step, _: FieldDifference) -> bool:
    names = [each["transactional_id"] for each in step.tree.get("transactions") or ()]
    return step.api_key == ApiKey.ADD_PARTITIONS_TO_TXN and len(set(names)) < len(names)


def _is_size_of_a_batch(step: Step, found: FieldDifference) -> bool:
    is_text = found.path.endswith(".error_message") and found.theirs == NOTHING
    return step.api_key == ApiKey.PRODUCE and is_text and "max.message.bytes" in str(found.ours)


def _is_cursor_overflow(step: Step, found: FieldDifference) -> bool:
    index = (step.tree.get("cursor") or {}).get("partition_index", 0)
    is_beyond = step.api_key == ApiKey.DESCRIBE_TOPIC_PARTITIONS and index == LARGE
    return is_beyond and found.path in ("next_cursor", "topics")


def _is_joining_failure(step: Step, found: FieldDifference) -> bool:
    return step.api_key == ApiKey.JOIN_GROUP and (
        (found.theirs, found.ours) == ("UNKNOWN_SERVER_ERROR", "UNKNOWN_MEMBER_ID")
        or (found.path == "member_id" and found.theirs == NOTHING)
    )


def _lacks_producer(step: Step, found: FieldDifference) -> bool:
    return step.api_key == ApiKey.PRODUCE and any(
        batch.get("transactional") and "producer" not in batch
        for topic in step.tree["topic_data"]
        for data in topic["partition_data"]
        for batch in (data["records"] or {}).get("batches", ())
    )


def _is_logger(step: Step, found: FieldDifference) -> bool:
    of_loggers = any(each["resource_type"] == _LOGGERS for each in step.tree.get("resources") or ())
    return step.api_key == ApiKey.DESCRIBE_CONFIGS and found.path.startswith("results.configs") and of_loggers


def _is_strict_reading(step: Step, found: FieldDifference) -> bool:
    if step.api_key not in (ApiKey.FETCH, ApiKey.LIST_OFFSETS):
        return False
    tree = step.tree
    return tree.get("isolation_level", 0) not in (0, 1) or tree.get("max_bytes", 0) < 0


def _is_without_records(step: Step, found: FieldDifference) -> bool:
    return step.api_key == ApiKey.PRODUCE and found.theirs == WAITS


def _is_named_twice(step: Step, found: FieldDifference) -> bool:
    if step.api_key != ApiKey.PRODUCE:
        return False
    named = [
        (repr(topic.get("topic_id" if step.version >= _PRODUCE_BY_ID else "name")), data["index"])
        for topic in step.tree["topic_data"]
        for data in topic["partition_data"]
    ]
    return len(set(named)) < len(named)


def _has_bytes_behind(step: Step, _: FieldDifference) -> bool:
    return step.api_key == ApiKey.PRODUCE and "size and more" in str(step.tree)


def _is_fenced_in_time(step: Step, found: FieldDifference) -> bool:
    is_second_protocol = step.api_key == ApiKey.END_TXN and step.version >= _SECOND_PROTOCOL
    return is_second_protocol and found.ours == "PRODUCER_FENCED"


def _is_behind_aborted(step: Step, found: FieldDifference) -> bool:
    """Kafka answers without records once, and the next request gets them. A session's first answer names partitions
    without records, too."""
    if step.api_key != ApiKey.SHARE_FETCH:
        return False
    match found.path:
        case "responses":
            return found.theirs == NOTHING and "'acquired_records'" in str(found.ours)
        case "responses.partitions.records":
            return found.theirs == "0 bytes" and isinstance(found.ours, list)
        case "responses.partitions.acquired_records":
            return found.theirs == NOTHING and isinstance(found.ours, list)
    return False


def _names_unknown_topic(step: Step, found: FieldDifference) -> bool:
    return step.api_key == ApiKey.SHARE_FETCH and (
        (found.theirs == "UNKNOWN_SERVER_ERROR" and found.path == "error_code")
        or (found.theirs == NOTHING and found.path in ("acquisition_lock_timeout_ms", "responses"))
    )


def _is_twice_in_topology(step: Step, _: FieldDifference) -> bool:
    if step.api_key != ApiKey.STREAMS_GROUP_HEARTBEAT:
        return False
    named = [each.get("subtopology_id") for each in (step.tree.get("topology") or {}).get("subtopologies") or ()]
    return len(set(named)) < len(named)


def _asks_for_no_state(step: Step, found: FieldDifference) -> bool:
    if step.api_key != ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS or not found.path.startswith("groups"):
        return False
    return any(
        not group["group_id"] or any(not topic["partitions"] for topic in group["topics"] or ())
        for group in step.tree["groups"]
    )


def _names_topic_twice(step: Step, found: FieldDifference) -> bool:
    if step.api_key != ApiKey.DELETE_SHARE_GROUP_OFFSETS or found.path != "responses":
        return False
    names = [topic["topic_name"] for topic in step.tree["topics"]]
    return len(set(names)) < len(names)


def _has_tag_twice(step: Step, found: FieldDifference) -> bool:
    if step.api_key != ApiKey.STREAMS_GROUP_HEARTBEAT:
        return False
    names = [tag["key"] for tag in step.tree.get("client_tags") or ()]
    return len(set(names)) < len(names)


def _is_before_the_first_topology(step: Step, found: FieldDifference) -> bool:
    is_refused = step.api_key == ApiKey.STREAMS_GROUP_HEARTBEAT and found.path in ("error_code", "error_message")
    return is_refused and (step.tree.get("topology") or {}).get("epoch", 0) < 0


INTENDED: Final[tuple[Intended, ...]] = (
    Intended("wording", "Texts of errors are the project's own: one is there where Kafka has one.", _is_wording),
    Intended(
        "features",
        "ApiVersions tells of what is offered: APIs, versions and features of Kafka 4.4, and metadata.version from 30 "
        "on.",
        _is_features,
    ),
    Intended(
        "answered by controllers",
        "Kafka offers these on controllers' listeners, and says UNKNOWN_SERVER_ERROR there.",
        _is_answered_by_controllers,
    ),
    Intended(
        "unreadable subscription",
        "A consumer whose subscription cannot be read is refused with INCONSISTENT_GROUP_PROTOCOL in JoinGroup, before "
        "anything else is looked at, and its group takes no consumers (GROUP_ID_NOT_FOUND). Kafka says "
        "UNKNOWN_SERVER_ERROR to such a consumer in a group of the consumer protocol and to the consumers, and may "
        "never answer in a classic group.",
        _is_unreadable_subscription,
        ends=True,
    ),
    Intended(
        "unknown isolation",
        "An unknown isolation level and a negative max_bytes are INVALID_REQUEST: Kafka says UNKNOWN_SERVER_ERROR to "
        "the first, and takes the second.",
        _is_strict_reading,
        ends=True,
    ),
    Intended(
        "no records",
        "A Produce without records (null) is INVALID_RECORD; Kafka fails within, and never answers.",
        _is_without_records,
        ends=True,
    ),
    Intended(
        "left by a refused join",
        "A JoinGroup that is refused changes nothing. On Kafka it leaves a new group without members in memory, and an "
        "empty group of the consumer protocol is gone.",
        _is_left_by_a_refused_join,
        ends=True,
    ),
    Intended(
        "transaction twice",
        "Of a transactional id that AddPartitionsToTxn names twice both are answered; Kafka tells one result twice.",
        _is_transaction_twice,
        ends=True,
    ),
    Intended(
        "size of a batch",
        "A batch that is larger than a topic takes is refused with both sizes; Kafka says nothing.",
        _is_size_of_a_batch,
    ),
    Intended(
        "cursor beyond the end",
        "A cursor behind a topic's last partition ends the topic; Kafka's sum overflows to a negative partition.",
        _is_cursor_overflow,
    ),
    Intended(
        "resource twice",
        "AlterConfigs that names a resource twice is INVALID_REQUEST for both; Kafka never answers.",
        lambda step, found: step.api_key == ApiKey.ALTER_CONFIGS and found.theirs == WAITS,
        ends=True,
    ),
    Intended(
        "append time of a producer",
        "A batch that claims the time of its append is INVALID_TIMESTAMP; Kafka takes it where the topic has the "
        "producer's times.",
        lambda step, _: step.api_key == ApiKey.PRODUCE and "log_append_time" in str(step.tree),
        ends=True,
    ),
    Intended(
        "names of loggers",
        "Loggers are those of the modules of each broker.",
        _is_logger,
    ),
    Intended(
        "unknown codec",
        "A batch whose codec nobody has is UNSUPPORTED_COMPRESSION_TYPE; Kafka says UNKNOWN_SERVER_ERROR.",
        lambda step, found: step.api_key == ApiKey.PRODUCE and found.ours == "UNSUPPORTED_COMPRESSION_TYPE",
    ),
    Intended(
        "joining fails",
        "A static member with an id that the group does not have is UNKNOWN_MEMBER_ID; Kafka may fail within, and says "
        "UNKNOWN_SERVER_ERROR without an id.",
        _is_joining_failure,
        ends=True,
    ),
    Intended(
        "transaction without a producer",
        "A transaction's batch without a producer id is INVALID_RECORD; Kafka appends it as one of no transaction.",
        _lacks_producer,
        ends=True,
    ),
    Intended(
        "no transactions",
        "AddPartitionsToTxn of version 4 and later for no transaction at all has an empty answer; Kafka never answers.",
        lambda step, found: step.api_key == ApiKey.ADD_PARTITIONS_TO_TXN and found.theirs == WAITS,
    ),
    Intended(
        "marker twice",
        "WriteTxnMarkers that names a partition twice for a producer is answered; Kafka never answers.",
        lambda step, found: step.api_key == ApiKey.WRITE_TXN_MARKERS and found.theirs == WAITS,
        ends=True,
    ),
    Intended(
        "bytes behind a batch",
        "A Produce whose records have bytes behind the batch is INVALID_RECORD; Kafka cuts them off and appends.",
        _has_bytes_behind,
        ends=True,
    ),
    Intended(
        "fenced in time",
        "An EndTxn 5 with the epoch before that of a transaction that ended by EndTxn 4 is fenced; Kafka takes it for "
        "a repeated one, and hands out the epoch of the producer that has the id by now.",
        _is_fenced_in_time,
        ends=True,
    ),
    Intended(
        "behind aborted records",
        "A ShareFetch of committed records goes on behind those of an aborted transaction; Kafka answers without any "
        "then, and the next one gets them.",
        _is_behind_aborted,
        ends=True,
    ),
    Intended(
        "unknown topic in a ShareFetch",
        "A partition whose topic id nobody knows is UNKNOWN_TOPIC_ID, beside the others; Kafka refuses the whole "
        "ShareFetch with UNKNOWN_SERVER_ERROR.",
        _names_unknown_topic,
        ends=True,
    ),
    Intended(
        "offsets of partitions that do not exist",
        "DescribeShareGroupOffsets answers for partitions that do not exist; Kafka never does.",
        lambda step, found: step.api_key == ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS and found.theirs == WAITS,
    ),
    Intended(
        "subtopology twice",
        "A topology with two subtopologies of one id is STREAMS_INVALID_TOPOLOGY; Kafka fails within, and says "
        "UNKNOWN_SERVER_ERROR.",
        _is_twice_in_topology,
        ends=True,
    ),
    Intended(
        "no state asked for",
        "DescribeShareGroupOffsets answers for topics without partitions, and for a group without a name, that there "
        "is nothing; Kafka says UNKNOWN_SERVER_ERROR of the whole group.",
        _asks_for_no_state,
    ),
    Intended(
        "share offsets of a topic twice",
        "A topic that DeleteShareGroupOffsets names twice is answered once; Kafka answers twice.",
        _names_topic_twice,
    ),
    Intended(
        "tag twice",
        "Of a client's tags in a StreamsGroupHeartbeat with one name the last one counts; Kafka fails within, and says "
        "UNKNOWN_SERVER_ERROR.",
        _has_tag_twice,
        ends=True,
    ),
    Intended(
        "negative epoch of a topology",
        "A topology with a negative epoch is INVALID_REQUEST; Kafka fails within, and says UNKNOWN_SERVER_ERROR.",
        _is_before_the_first_topology,
    ),
    Intended(
        "refused snapshots",
        "A FetchSnapshot for one that is not there is answered with the error for its partition; Kafka fails while it "
        "writes such an answer, and says UNKNOWN_SERVER_ERROR or nothing.",
        lambda step, _: step.api_key == ApiKey.FETCH_SNAPSHOT,
    ),
    Intended(
        "unreadable metrics",
        "Metrics that a client pushes and that cannot be read are INVALID_RECORD; Kafka reads them where a reporter "
        "takes them.",
        lambda step, found: step.api_key == ApiKey.PUSH_TELEMETRY and found.ours == "INVALID_RECORD",
    ),
    Intended(
        "partition twice",
        "A partition that a Produce names twice is INVALID_REQUEST both times; Kafka appends one batch, and drops the "
        "other.",
        _is_named_twice,
        ends=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one case. open: the differences that nobody means. meant: those that are meant; ends: as in `Intended`."""

    open: list[FieldDifference]
    meant: list[Intended]

    @property
    def ends(self) -> bool:
        return bool(self.open) or any(each.ends for each in self.meant)


def judged(step: Step, found: Sequence[FieldDifference]) -> Verdict:
    verdict = Verdict([], [])
    for difference in found:
        meant = next((each for each in INTENDED if each.covers(step, difference)), None)
        if meant is None:
            verdict.open.append(difference)
        elif meant not in verdict.meant:
            verdict.meant.append(meant)
    return verdict

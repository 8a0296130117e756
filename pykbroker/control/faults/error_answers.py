"""Answers that say an error: what Kafka's `AbstractRequest.getErrorResponse` makes of a request, for any API.

A response names what its request named, each with the error, which stands where the innermost entries have a place for
it, and at the top of responses that have no entries. The names of fields tell which list of a request a list of its
response answers; where these differ, and where Kafka does something else, a table below says so.

Fetch, ShareFetch and ShareAcknowledge go their own way, for errors of single partitions: Kafka's error answer says them
of the request as a whole (a Fetch's in later versions), which no broker does, and clients do not act on. A Fetch's also
ends the client's session, whose epoch it would count on where the broker has not seen the request; a share session has
nothing to say that with, and its client begins anew when the next one is answered INVALID_SHARE_SESSION_EPOCH.
"""

from __future__ import annotations

from typing import Any, Final

from pykbroker.protocol.api_keys import ApiKey, response_type
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersion
from pykbroker.protocol.schema import Field, Message, Struct, parse_versions

_ERROR_CODES: Final = frozenset({"error_code", "partition_error_code"})
_ERROR_MESSAGE: Final = "error_message"

_ANSWERED_BY: Final[dict[str, tuple[str, ...]]] = {
    # the response's list: the request's
    "responses": ("topic_data", "topics", "resources"),
    "partition_responses": ("partition_data",),
    "partitions": ("partitions", "partition_indexes"),
    "results": ("topics", "resources", "creations", "groups_names", "users"),
    "coordinators": ("coordinator_keys",),
    "filter_results": ("filters",),
    "replica_election_results": ("topic_partitions",),
    "partition_result": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "results_by_partition": ("partitions",),
    "transaction_states": ("transactional_ids",),
    "groups": ("groups", "group_ids"),
}
_NAMED_BY: Final[dict[str, tuple[str, ...]]] = {
    # the response's field: the request's
    "partition_index": ("partition_index", "partition"),
    "partition_id": ("partition_index", "partition"),
    "topic": ("topic", "name"),
    "name": ("name", "topic"),
}
_IDENTITIES: Final = frozenset(
    (
        *("name", "topic", "topic_id", "index", "partition_index", "partition_id", "key", "group_id"),
        *("partition", "transactional_id", "resource_type", "resource_name", "producer_id"),
        *("entity_type", "entity_name"),
    )
)
_ALWAYS: Final = "0+"
_AS_A_WHOLE: Final[dict[tuple[int, str], str]] = {
    # a message or an entry that is not taken apart: in which versions
    (ApiKey.FETCH, ""): "13+",
    (ApiKey.OFFSET_FETCH, ""): "2-7",
    (ApiKey.OFFSET_FETCH, "groups"): "8+",
    (ApiKey.LEAVE_GROUP, ""): "3+",
    (ApiKey.DESCRIBE_LOG_DIRS, ""): _ALWAYS,
    (ApiKey.OFFSET_DELETE, ""): _ALWAYS,
    (ApiKey.DESCRIBE_QUORUM, ""): _ALWAYS,
    (ApiKey.UPDATE_FEATURES, ""): _ALWAYS,
    (ApiKey.SHARE_FETCH, ""): _ALWAYS,
    (ApiKey.SHARE_ACKNOWLEDGE, ""): _ALWAYS,
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "groups"): _ALWAYS,
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, ""): _ALWAYS,
    (ApiKey.DELETE_SHARE_GROUP_OFFSETS, ""): _ALWAYS,
    (ApiKey.STREAMS_GROUP_HEARTBEAT, ""): _ALWAYS,
}
_AT_THE_TOP_TOO: Final[dict[int, str]] = {
    ApiKey.FETCH: "7+",
    ApiKey.METADATA: "13+",
    ApiKey.ELECT_LEADERS: "1+",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ALWAYS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _ALWAYS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _ALWAYS,
}
_VALUES: Final[dict[tuple[int, str], Any]] = {
    # what stands in other fields, where it is not their default
    (ApiKey.PRODUCE, "base_offset"): -1,
    (ApiKey.FETCH, "high_watermark"): -1,
    (ApiKey.FETCH, "records"): b"",
    (ApiKey.SHARE_FETCH, "records"): b"",
    (ApiKey.OFFSET_FETCH, "committed_offset"): -1,
    (ApiKey.FIND_COORDINATOR, "node_id"): -1,
    (ApiKey.FIND_COORDINATOR, "port"): -1,
    (ApiKey.DELETE_RECORDS, "low_watermark"): -1,
    (ApiKey.INIT_PRODUCER_ID, "producer_id"): -1,
    (ApiKey.INIT_PRODUCER_ID, "producer_epoch"): -1,
    (ApiKey.CREATE_DELEGATION_TOKEN, "principal_type"): "User",
    (ApiKey.CREATE_DELEGATION_TOKEN, "principal_name"): "ANONYMOUS",
    (ApiKey.CREATE_DELEGATION_TOKEN, "token_requester_principal_type"): "User",
    (ApiKey.CREATE_DELEGATION_TOKEN, "token_requester_principal_name"): "ANONYMOUS",
    (ApiKey.CREATE_DELEGATION_TOKEN, "issue_timestamp_ms"): -1,
    (ApiKey.CREATE_DELEGATION_TOKEN, "expiry_timestamp_ms"): -1,
    (ApiKey.CREATE_DELEGATION_TOKEN, "max_timestamp_ms"): -1,
    (ApiKey.CREATE_TOPICS, "configs"): [],
    (ApiKey.END_TXN, "producer_id"): -1,
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, "entries"): None,
}
_SAYS_NOTHING: Final = frozenset(
    (
        *(ApiKey.DELETE_TOPICS, ApiKey.DESCRIBE_PRODUCERS, ApiKey.CONSUMER_GROUP_HEARTBEAT),
        *(ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS),
        *(ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE),
        *(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE),
        *(ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE),
    )
)
_SAYS_EVERYTHING: Final = frozenset(
    (
        *(ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_QUORUM),
        *(ApiKey.UNREGISTER_BROKER, ApiKey.UNREGISTER_CONTROLLER, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER),
        *(ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
        *(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS),
    )
)
"""With a message for UNKNOWN_SERVER_ERROR, too."""
_NULLABLE_PROTOCOL_NAME: Final = 7
_TOPICS_BY_ID: Final = 6
OF_PARTITIONS: Final = frozenset(
    (
        *(ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.REPLICA_NOT_AVAILABLE),
        *(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH),
        *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID),
        *(ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.CORRUPT_MESSAGE),
        *(ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.INVALID_TOPIC_EXCEPTION),
    )
)
"""The errors that a broker says of a partition in a Fetch."""
_OF_SHARED_PARTITIONS: Final = OF_PARTITIONS | {ErrorCode.INVALID_RECORD_STATE}
_OF_PARTITIONS: Final[dict[int, frozenset[ErrorCode]]] = {
    ApiKey.FETCH: OF_PARTITIONS,
    ApiKey.SHARE_FETCH: _OF_SHARED_PARTITIONS,
    ApiKey.SHARE_ACKNOWLEDGE: _OF_SHARED_PARTITIONS,
}


def is_of_partitions(api_key: int, error: ErrorCode) -> bool:
    """Tell whether a broker says the error of each partition of such a request."""
    return error in _OF_PARTITIONS.get(api_key, frozenset())


def error_answer(request: Message, version: int, error: ErrorCode, message: str) -> Message | None:
    """Return the response in which all that the request asks for fails; None where the client wants no answer.

    message: where the response has a place for one.
    """
    api_key = type(request).__schema__.api_key
    assert api_key is not None, f"{type(request).__name__} is not a request"
    if api_key == ApiKey.PRODUCE and not request.acks:  # type: ignore[attr-defined]
        return None
    return _Writer(api_key, version, error, message).answer(request)


def version_of_answer(api_key: int, version: int, error: ErrorCode) -> int:
    """Return the version in which a broker says an error: to a client whose ApiVersions it does not know, the first."""
    return 0 if api_key == ApiKey.API_VERSIONS and error is ErrorCode.UNSUPPORTED_VERSION else version


def has_place_for_errors(api_key: int) -> bool:
    """Tell whether a response of the API can say an error."""
    return _has_place(response_type(api_key))


def _has_place(part: type[Struct]) -> bool:
    return any(
        each.name in _ERROR_CODES or (each.element == "struct" and _has_place(each.struct))
        for each in part.__schema__.fields
    )


class _Writer:
    def __init__(self, api_key: int, version: int, error: ErrorCode, message: str) -> None:
        self._api_key = api_key
        self._version = version
        self._error = error
        is_hidden = error is ErrorCode.UNKNOWN_SERVER_ERROR and api_key not in _SAYS_EVERYTHING
        self._message = None if is_hidden else message
        self._is_of_partitions = is_of_partitions(api_key, error)

    def answer(self, request: Message) -> Message:
        response = response_type(self._api_key)()
        if self._is_of_partitions:
            self._is_of_partitions = bool(request.topics)  # type: ignore[attr-defined]
        if self._api_key == ApiKey.FETCH:
            if not self._is_of_partitions:
                response.session_id = request.session_id  # type: ignore[attr-defined]
        elif self._api_key == ApiKey.JOIN_GROUP and self._version >= _NULLABLE_PROTOCOL_NAME:
            response.protocol_name = None  # type: ignore[attr-defined]
        elif self._api_key == ApiKey.API_VERSIONS and self._error is ErrorCode.UNSUPPORTED_VERSION:
            known = type(request).__schema__.versions  # so that the client knows which version to take
            response.api_keys = [  # type: ignore[attr-defined]
                ApiVersion(api_key=self._api_key, min_version=known.low, max_version=known.high)
            ]
        elif self._api_key == ApiKey.DELETE_TOPICS and self._version < _TOPICS_BY_ID:
            described = next(each for each in type(response).__schema__.fields if each.name == "responses")
            named = request.topic_names  # type: ignore[attr-defined]
            response.responses = [self._entry(described, name) for name in named]  # type: ignore[attr-defined]
            return response
        elif self._api_key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
            self._answer_users(response, request)
            return response
        elif self._api_key == ApiKey.ALTER_REPLICA_LOG_DIRS:
            self._answer_directories(response, request)
            return response
        self._fill(response, request, "")
        if self._includes(_AT_THE_TOP_TOO.get(self._api_key)) and not self._is_of_partitions:
            self._say(response)
        return response

    def _includes(self, versions: str | None) -> bool:
        return versions is not None and parse_versions(versions).includes(self._version)

    def _fill(self, response: Struct, request: Struct, at: str) -> None:
        """Fill a part of the response with what the part of the request names."""
        is_whole = self._includes(_AS_A_WHOLE.get((self._api_key, at))) and not self._is_of_partitions
        has_entries = False
        for each in type(response).__schema__.fields:
            if not each.versions.includes(self._version):
                continue
            value = _VALUES.get((self._api_key, each.name), self)
            if value is not self:
                setattr(response, each.name, value)
            elif each.is_array and each.element == "struct":
                if not is_whole and (asked := _asked(each, request)) is not None:
                    setattr(response, each.name, [self._entry(each, item) for item in asked])
                    has_entries |= _has_place(each.struct)
            elif each.name in _IDENTITIES:
                _identify(response, each, request)
        if has_entries:
            return
        if at == "partitions" and self._is_of_partitions and self._api_key != ApiKey.FETCH:
            self._say_of_shared(response, request)
        else:
            self._say(response)

    def _entry(self, described: Field, item: Any) -> Struct:
        """The entry for an entry of the request, or for a plain value: a name, an id or the number of a partition."""
        entry = described.struct()
        if isinstance(item, Struct):
            self._fill(entry, item, described.name)
            return entry
        for each in type(entry).__schema__.fields:
            if each.name in _IDENTITIES and isinstance(item, str if each.kind == "string" else int):
                setattr(entry, each.name, item)
                break
        for each in type(entry).__schema__.fields:
            value = _VALUES.get((self._api_key, each.name))
            if value is not None:
                setattr(entry, each.name, value)
        self._say(entry)
        return entry

    def _say_of_shared(self, partition: Any, item: Any) -> None:
        """Say the error of a share group's partition, and of the records that are acknowledged there.

        One of records alone is said of nothing else. No leader is named: the fields' default is a node.
        """
        partition.current_leader.leader_id = partition.current_leader.leader_epoch = -1
        if self._api_key == ApiKey.SHARE_FETCH and item.acknowledgement_batches:
            partition.acknowledge_error_code = int(self._error)
        if self._api_key != ApiKey.SHARE_FETCH or self._error is not ErrorCode.INVALID_RECORD_STATE:
            self._say(partition)

    def _say(self, part: Struct) -> None:
        """Put the error into a part of the response that has a place for it in this version."""
        for each in type(part).__schema__.fields:
            if not each.versions.includes(self._version):
                continue
            if each.name in _ERROR_CODES:
                setattr(part, each.name, int(self._error))
            elif each.name == _ERROR_MESSAGE and self._api_key not in _SAYS_NOTHING:
                setattr(part, each.name, self._message)

    def _answer_users(self, response: Message, request: Message) -> None:
        """AlterUserScramCredentials: each user once, whatever is to become of him."""
        described = next(each for each in type(response).__schema__.fields if each.name == "results")
        named = [*request.deletions, *request.upsertions]  # type: ignore[attr-defined]
        for user in dict.fromkeys(each.name for each in named):
            result: Any = described.struct()
            result.user = user
            self._say(result)
            response.results.append(result)  # type: ignore[attr-defined]

    def _answer_directories(self, response: Message, request: Message) -> None:
        """AlterReplicaLogDirs: by topics, where the request goes by directories."""
        described = next(each for each in type(response).__schema__.fields if each.name == "results")
        partitions = next(each for each in described.struct.__schema__.fields if each.name == "partitions")
        for directory in request.dirs:  # type: ignore[attr-defined]
            for topic in directory.topics:
                result: Any = described.struct()
                result.topic_name = topic.name
                result.partitions = [self._entry(partitions, index) for index in topic.partitions]
                response.results.append(result)  # type: ignore[attr-defined]


def _asked(described: Field, request: Struct) -> list[Any] | None:
    """Return what the request lists where the response has this list; None where it has no such list."""
    for name in _ANSWERED_BY.get(described.name, (described.name,)):
        asked = getattr(request, name, None)
        if isinstance(asked, list):
            return asked
    return None


def _identify(response: Struct, described: Field, request: Struct) -> None:
    for name in _NAMED_BY.get(described.name, (described.name,)):
        value = getattr(request, name, None)
        if value is not None and not isinstance(value, (list, Struct)):
            setattr(response, described.name, value)
            return

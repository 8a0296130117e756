"""Kafka's error codes, the error that ends a request, and the errors of the codecs.

An `ErrorCode` is an expected answer, a value like any other. An `ApiError` ends a request, or one row of it, with an
error code. A `ProtocolError` is for bytes that cannot be read and for versions that cannot carry a field. Names,
numbers and which of them a client may retry are Kafka's (`org.apache.kafka.common.protocol.Errors`); the descriptions
are ours.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ProtocolError(Exception):
    """Bytes or values that cannot be read or written under the rules of the protocol."""


class MalformedMessage(ProtocolError):
    """Bytes that are not what the schema says. The peer is at fault: its connection is closed."""


class TooManyElements(MalformedMessage):
    """A message announces more elements than the one who decodes it was ready to make."""


class UnsupportedVersion(ProtocolError):
    """A version that a message does not have, or one that cannot carry a field which is set."""


class ErrorCode(IntEnum):
    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136

    @property
    def retriable(self) -> bool:
        """Tell whether a client may send the same request again without asking its user."""
        return self in _RETRIABLE

    @property
    def description(self) -> str:
        """One sentence for people; the text that answers carry where they have an error message."""
        return _DESCRIPTIONS[self]


class ApiError(Exception):
    """A request, or one row of a request, ends with an error code and the words for it.

    Kafka's models are `org.apache.kafka.common.requests.ApiError` and `org.apache.kafka.common.errors.ApiException`.
    A rule raises the error, and whoever writes the response or the row catches it: `code` becomes `error_code`, and
    `message` becomes `error_message` where the response has such a field. A `message` of None leaves that field null;
    `str(error)` then falls back to the description of the code, as Kafka's `ApiError.messageWithFallback` does. A
    subclass exists only where somebody reads more data than these two.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.code.description if self.message is None else self.message


_RETRIABLE: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)

_DESCRIPTIONS: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "The broker failed in a way it did not expect.",
    ErrorCode.NONE: "No error.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "The offset lies outside of what the partition holds.",
    ErrorCode.CORRUPT_MESSAGE: "The record batch is damaged: its checksum, its size or its layout is wrong.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "No such topic or partition on this broker.",
    ErrorCode.INVALID_FETCH_SIZE: "The fetch size is not valid.",
    ErrorCode.LEADER_NOT_AVAILABLE: "The partition has no leader at the moment.",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "This broker is not the partition's leader, or holds no replica of it.",
    ErrorCode.REQUEST_TIMED_OUT: "The request was not completed in the time it allowed.",
    ErrorCode.BROKER_NOT_AVAILABLE: "The broker is not available.",
    ErrorCode.REPLICA_NOT_AVAILABLE: "The replica is not available on this broker.",
    ErrorCode.MESSAGE_TOO_LARGE: "The record batch is larger than this broker or topic accepts.",
    ErrorCode.STALE_CONTROLLER_EPOCH: "The controller epoch in the request has been superseded.",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "The metadata string of a committed offset is too long.",
    ErrorCode.NETWORK_EXCEPTION: "The connection was lost before an answer arrived.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is still loading its state.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This broker does not coordinate that group or transactional id.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "The topic name is not allowed.",
    ErrorCode.RECORD_LIST_TOO_LARGE: "The record batch is larger than a log segment may be.",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Fewer replicas are in sync than min.insync.replicas asks for; nothing was written.",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "Written, but too few replicas are in sync to acknowledge it.",
    ErrorCode.INVALID_REQUIRED_ACKS: "acks must be 0, 1 or -1.",
    ErrorCode.ILLEGAL_GENERATION: "The generation is not the group's current one.",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "The member's protocol type or protocols do not fit those of the group.",
    ErrorCode.INVALID_GROUP_ID: "The group id is not valid.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group does not know this member.",
    ErrorCode.INVALID_SESSION_TIMEOUT: "The session timeout is outside of what the broker allows.",
    ErrorCode.REBALANCE_IN_PROGRESS: "The group is rebalancing; the member must join again.",
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: "The offsets to commit take up too much space.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Not authorized for the topic.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Not authorized for the group.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Not authorized for the cluster.",
    ErrorCode.INVALID_TIMESTAMP: "A record's timestamp lies too far from the broker's clock.",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "This listener does not offer the SASL mechanism.",
    ErrorCode.ILLEGAL_SASL_STATE: "The request does not fit the state of the SASL exchange.",
    ErrorCode.UNSUPPORTED_VERSION: "The broker does not serve this version of the API.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "The topic exists already.",
    ErrorCode.INVALID_PARTITIONS: "The number of partitions is not valid.",
    ErrorCode.INVALID_REPLICATION_FACTOR: "The replication factor is below 1 or exceeds the number of brokers.",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "The replica assignment is not valid.",
    ErrorCode.INVALID_CONFIG: "The configuration is not valid.",
    ErrorCode.NOT_CONTROLLER: "This node is not the active controller.",
    ErrorCode.INVALID_REQUEST: "The request contradicts itself or the rules of the API.",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "The log's message format cannot serve this request.",
    ErrorCode.POLICY_VIOLATION: "The request violates a policy of the cluster.",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "The sequence number leaves a gap after the producer's last batch.",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "The batch is a repetition of one that is already in the log.",
    ErrorCode.INVALID_PRODUCER_EPOCH: "A newer epoch of this producer exists.",
    ErrorCode.INVALID_TXN_STATE: "The transaction's state does not allow this operation.",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "The producer id is not the one assigned to the transactional id.",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "The transaction timeout exceeds transaction.max.timeout.ms.",
    ErrorCode.CONCURRENT_TRANSACTIONS: "Another operation on the same transactional id is under way.",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "The markers come from a transaction coordinator that has been replaced.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Not authorized for the transactional id.",
    ErrorCode.SECURITY_DISABLED: "Security features are turned off.",
    ErrorCode.OPERATION_NOT_ATTEMPTED: "The operation was not tried, because another one of the same request failed.",
    ErrorCode.KAFKA_STORAGE_ERROR: "The log directory of the partition has failed.",
    ErrorCode.LOG_DIR_NOT_FOUND: "The broker has no such log directory.",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "The credentials were refused.",
    ErrorCode.UNKNOWN_PRODUCER_ID: "The broker holds no state of this producer id.",
    ErrorCode.REASSIGNMENT_IN_PROGRESS: "A reassignment of the partition is in progress.",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation tokens are turned off.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "No such delegation token.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "The principal is neither the token's owner nor one of its renewers.",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "Delegation tokens cannot be requested over such a connection.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Not authorized for the delegation token.",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "The delegation token has expired.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "The principal type is not supported.",
    ErrorCode.NON_EMPTY_GROUP: "The group still has members.",
    ErrorCode.GROUP_ID_NOT_FOUND: "No such group.",
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: "The broker does not know this fetch session.",
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: "The fetch session epoch is not the one that is due.",
    ErrorCode.LISTENER_NOT_FOUND: "The leader has no listener of the name through which the metadata was requested.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topic deletion is turned off.",
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the broker's.",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "The leader epoch in the request is newer than the broker's.",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "The compression type is unknown, or too new for the version used.",
    ErrorCode.STALE_BROKER_EPOCH: "The broker epoch in the request has been superseded.",
    ErrorCode.OFFSET_NOT_AVAILABLE: "A new leader does not know its high watermark yet.",
    ErrorCode.MEMBER_ID_REQUIRED: "The member must join again with the member id that it has been given.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred replica cannot become the leader.",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "The group has reached its largest size.",
    ErrorCode.FENCED_INSTANCE_ID: "Another member has taken over this group instance id.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "No replica is eligible to become the leader.",
    ErrorCode.ELECTION_NOT_NEEDED: "The partition has the wanted leader already.",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "No reassignment of the partition is in progress.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "A group is subscribed to the topic, so its offsets cannot be deleted.",
    ErrorCode.INVALID_RECORD: "A record failed the broker's validation.",
    ErrorCode.UNSTABLE_OFFSET_COMMIT: "Offsets of an open transaction are pending.",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "A quota is exceeded.",
    ErrorCode.PRODUCER_FENCED: "A newer producer with the same transactional id has fenced this one.",
    ErrorCode.RESOURCE_NOT_FOUND: "No such resource.",
    ErrorCode.DUPLICATE_RESOURCE: "The same resource is named twice.",
    ErrorCode.UNACCEPTABLE_CREDENTIAL: "The credential does not meet the requirements.",
    ErrorCode.INCONSISTENT_VOTER_SET: "Sender or receiver is not among the expected voters.",
    ErrorCode.INVALID_UPDATE_VERSION: "The requested version of a feature is not valid.",
    ErrorCode.FEATURE_UPDATE_FAILED: "The features could not be updated.",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "The principal of a forwarded request could not be read.",
    ErrorCode.SNAPSHOT_NOT_FOUND: "No such snapshot.",
    ErrorCode.POSITION_OUT_OF_RANGE: "The position lies outside of the snapshot.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This broker knows no topic with that id.",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: "Another broker is registered under this id.",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "No broker is registered under this id.",
    ErrorCode.INCONSISTENT_TOPIC_ID: "The topic id does not match the log's.",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "The cluster id does not match this cluster's.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "No such transactional id.",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "The fetch session mixes topic names and topic ids.",
    ErrorCode.INELIGIBLE_REPLICA: "A proposed member of the in-sync replicas is not eligible.",
    ErrorCode.NEW_LEADER_ELECTED: "The change was made, but the partition has a new leader.",
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE: "The offset has moved to tiered storage.",
    ErrorCode.FENCED_MEMBER_EPOCH: "The member's epoch is fenced: it must give up its partitions and join again.",
    ErrorCode.UNRELEASED_INSTANCE_ID: "Another member still holds this instance id.",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "The group supports none of the member's assignors.",
    ErrorCode.STALE_MEMBER_EPOCH: "The member's epoch is out of date: it must heartbeat, then try again.",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "The request came to the wrong kind of endpoint.",
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "This kind of endpoint is not supported.",
    ErrorCode.UNKNOWN_CONTROLLER_ID: "No controller with this id is known.",
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: "The telemetry subscription is unknown or out of date.",
    ErrorCode.TELEMETRY_TOO_LARGE: "The telemetry payload exceeds the broker's limit.",
    ErrorCode.INVALID_REGISTRATION: "The controller has rejected the registration.",
    ErrorCode.TRANSACTION_ABORTABLE: "The transaction cannot go on, but may be aborted.",
    ErrorCode.INVALID_RECORD_STATE: "The record is not in a state that allows this acknowledgement.",
    ErrorCode.SHARE_SESSION_NOT_FOUND: "The broker does not know this share session.",
    ErrorCode.INVALID_SHARE_SESSION_EPOCH: "The share session epoch is not the one that is due.",
    ErrorCode.FENCED_STATE_EPOCH: "The share group's state epoch has been superseded.",
    ErrorCode.INVALID_VOTER_KEY: "The voter's directory id is not that of the receiving node.",
    ErrorCode.DUPLICATE_VOTER: "The node is a voter already.",
    ErrorCode.VOTER_NOT_FOUND: "The node is not a voter.",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "The regular expression cannot be compiled.",
    ErrorCode.REBOOTSTRAP_REQUIRED: "The view of the cluster is too old: start from the bootstrap servers.",
    ErrorCode.STREAMS_INVALID_TOPOLOGY: "The topology is not valid.",
    ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH: "The topology epoch is not valid.",
    ErrorCode.STREAMS_TOPOLOGY_FENCED: "The topology epoch is out of date.",
    ErrorCode.SHARE_SESSION_LIMIT_REACHED: "The broker holds as many share sessions as it may.",
    ErrorCode.GROUP_DELETION_FAILED: "The group could not be deleted.",
    ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED: "The description of the topology could not be stored.",
    ErrorCode.CONTROLLER_ID_NOT_REGISTERED: "No controller is registered under this id.",
}

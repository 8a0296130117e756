"""The APIs that Kafka answers with an error, for errors that mean something in few of them.

Others, such as UNKNOWN_SERVER_ERROR or an authorization that failed, may come anywhere.
"""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode

_CLASSIC_MEMBERS: Final = frozenset((ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP))
_NEW_MEMBERS: Final = frozenset(
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT)
)
_OFFSETS: Final = frozenset((ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT, ApiKey.OFFSET_FETCH))
_SHARES: Final = frozenset((ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE))
_FETCHES: Final = _SHARES | {ApiKey.FETCH}
_PRODUCE: Final = frozenset((ApiKey.PRODUCE,))

_APIS: Final[dict[ErrorCode, frozenset[ApiKey]]] = {
    ErrorCode.ILLEGAL_GENERATION: _CLASSIC_MEMBERS | _OFFSETS,
    ErrorCode.REBALANCE_IN_PROGRESS: _CLASSIC_MEMBERS | _OFFSETS,
    ErrorCode.MEMBER_ID_REQUIRED: frozenset((ApiKey.JOIN_GROUP,)),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: frozenset((ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)),
    ErrorCode.INVALID_SESSION_TIMEOUT: frozenset((ApiKey.JOIN_GROUP,)),
    ErrorCode.UNKNOWN_MEMBER_ID: _CLASSIC_MEMBERS | _NEW_MEMBERS | _OFFSETS | _FETCHES,
    ErrorCode.FENCED_MEMBER_EPOCH: _NEW_MEMBERS | _OFFSETS,
    ErrorCode.STALE_MEMBER_EPOCH: _OFFSETS,
    ErrorCode.UNRELEASED_INSTANCE_ID: _NEW_MEMBERS,
    ErrorCode.UNSUPPORTED_ASSIGNOR: _NEW_MEMBERS,
    ErrorCode.OFFSET_METADATA_TOO_LARGE: _OFFSETS,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: _OFFSETS,
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: frozenset((ApiKey.FETCH,)),
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: frozenset((ApiKey.FETCH,)),
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: frozenset((ApiKey.FETCH,)),
    ErrorCode.OFFSET_OUT_OF_RANGE: _FETCHES | {ApiKey.DELETE_RECORDS, ApiKey.LIST_OFFSETS},
    ErrorCode.SHARE_SESSION_NOT_FOUND: _SHARES,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH: _SHARES,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED: frozenset((ApiKey.SHARE_FETCH,)),
    ErrorCode.INVALID_RECORD_STATE: _SHARES,
    ErrorCode.STREAMS_INVALID_TOPOLOGY: frozenset((ApiKey.STREAMS_GROUP_HEARTBEAT,)),
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: _PRODUCE,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: _PRODUCE,
    ErrorCode.INVALID_RECORD: _PRODUCE,
    ErrorCode.INVALID_REQUIRED_ACKS: _PRODUCE,
    ErrorCode.RECORD_LIST_TOO_LARGE: _PRODUCE,
    ErrorCode.NOT_ENOUGH_REPLICAS: _PRODUCE | {ApiKey.WRITE_TXN_MARKERS},
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _PRODUCE | {ApiKey.WRITE_TXN_MARKERS},
}


def apis_of_error(error: ErrorCode) -> frozenset[ApiKey] | None:
    """Return the only APIs that Kafka answers with this error; None for one that may come anywhere."""
    return _APIS.get(error)

"""Answers that say an error: what Kafka's `AbstractRequest.getErrorResponse` makes of a request, for any API.

A response names what its request named, each with the error. Which of a request's lists a response answers is told by their
names; where these differ, `_ANSWERED_BY` has them. The error stands where the innermost entries have a place for it, and
at the top of responses that have no entries.
"""

from __future__ import annotations

from typing import Any, Final

from pykbroker.protocol.api_keys import ApiKey, response_type
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import Field, Message, Struct

_ERROR_CODE: Final = "error_code"

_ANSWERED_BY: Final[dict[str, tuple[str, ...]]] = {
    # the response's list: the request's
    "responses": ("topic_data", "topics", "resources", "topic_names"),
    "partition_responses": ("partition_data", "partitions", "partition_indexes"),
    "partitions": ("partitions", "partition_indexes", "partition_data"),
    "results": ("topics", "resources", "creations", "groups_names", "feature_updates", "dirs"),
    "coordinators": ("coordinator_keys",),
    "filter_results": ("filters",),
    "replica_election_results": ("topic_partitions",),
    "partition_result": ("partitions",),
    "results_by_transaction": ("transactions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "topic_results": ("topics",),
    "results_by_partition": ("partitions",),
    "transaction_states": ("transactional_ids",),
    "groups": ("groups", "group_ids"),
}
_NAMED_BY: Final[dict[str, tuple[str, ...]]] = {
    # the response's field: the request's
    "index": ("index", "partition_index", "partition"),
    "partition_index": ("partition_index", "index", "partition", "partition_id"),
    "partition_id": ("partition_index", "partition"),
    "partition": ("partition", "partition_index"),
    "feature": ("feature",),
    "topic": ("topic", "name"),
    "name": ("name", "topic"),
}
_IDENTITIES: Final = frozenset(
    (
        *("name", "topic", "topic_id", "index", "partition_index", "partition", "partition_id", "key"),
        *("group_id", "member_id", "group_instance_id", "transactional_id", "resource_type", "resource_name"),
        *("feature", "producer_id", "user", "path"),
    )
)
_SESSIONS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Of a Fetch as a whole."""


def error_answer(request: Message, error: ErrorCode) -> Message | None:
    """Return the response in which all that the request asks for fails; None where the API has no place for errors."""
    api_key = type(request).__schema__.api_key
    assert api_key is not None, f"{type(request).__name__} is not a request"
    response = response_type(api_key)()
    if api_key == ApiKey.FETCH and error in _SESSIONS:
        response.error_code = error  # type: ignore[attr-defined]
        return response
    return response if _fill(response, request, error) else None


def with_error(response: Message, error: ErrorCode) -> bool:
    """Put the error into a response that a broker gave, wherever there is a place; False where there is none.

    What was answered besides, such as records, goes.
    """
    return _overwrite(response, error)


def _fill(response: Struct, request: Struct, error: ErrorCode) -> bool:
    """Fill a part of the response with what the part of the request names. Return whether the error has a place in it."""
    has_place = False
    for each in type(response).__schema__.fields:
        if each.is_array and each.element == "struct":
            entries = _entries(each, request, error)
            if entries is not None:
                setattr(response, each.name, entries)
                has_place = True
        elif each.name in _IDENTITIES:
            _identify(response, each, request)
    if not has_place and _has(response, _ERROR_CODE):
        response.error_code = error  # type: ignore[attr-defined]
        return True
    return has_place


def _entries(described: Field, request: Struct, error: ErrorCode) -> list[Struct] | None:
    """The entries of a response's list, for those of the request's; None where the request has no such list."""
    for name in _ANSWERED_BY.get(described.name, (described.name,)):
        asked = getattr(request, name, None)
        if not isinstance(asked, list) or not asked:
            continue
        entries = []
        for item in asked:
            entry = described.struct()
            if isinstance(item, Struct):
                if not _fill(entry, item, error):
                    return None
            elif not _name(entry, item, error):
                return None
            entries.append(entry)
        return entries
    return None


def _identify(response: Struct, described: Field, request: Struct) -> None:
    for name in _NAMED_BY.get(described.name, (described.name,)):
        value = getattr(request, name, None)
        if value is not None and not isinstance(value, (list, Struct)):
            setattr(response, described.name, value)
            return


def _name(entry: Struct, value: Any, error: ErrorCode) -> bool:
    """Fill an entry for a request's list of plain values: names, ids or numbers of partitions."""
    for each in type(entry).__schema__.fields:
        if each.name in _IDENTITIES and isinstance(value, str if each.kind == "string" else int):
            setattr(entry, each.name, value)
            break
    if not _has(entry, _ERROR_CODE):
        return False
    entry.error_code = error  # type: ignore[attr-defined]
    return True


def _overwrite(part: Struct, error: ErrorCode) -> bool:
    has_place = False
    for each in type(part).__schema__.fields:
        value = getattr(part, each.name)
        if each.is_array and each.element == "struct" and value:
            has_place |= any([_overwrite(entry, error) for entry in value])
        elif each.kind == "records" and value is not None:
            setattr(part, each.name, None)
    if not has_place and _has(part, _ERROR_CODE):
        part.error_code = error  # type: ignore[attr-defined]
        return True
    return has_place


def _has(part: Struct, field: str) -> bool:
    return any(each.name == field for each in type(part).__schema__.fields)

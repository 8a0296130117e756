"""The differences of what two brokers answered.

Exchanges of both runs belong together by client id and API. How often a client asks, and for what together, is its own
business, so an answer is taken apart: `responses[orders].partition_responses[0]` is one part. Of most APIs the distinct
values of each part are compared, in whatever order they came; where one broker gave all that the other gave, and more,
what is more counts if it has an error. Of producing, transactions and commits the values of a part are a sequence, in
which one like the one before counts once. Of topics and configurations whole answers are such a sequence. Parts that
only tell a client to try again are left out where others came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from pykbroker.protocol.api_keys import ApiKey, api_name
from pykbroker.protocol.errors import ErrorCode

from .field_differences import MISSING, FieldDifference, field_differences
from .normal_form import identity, learn_topics, normal_form
from .placeholders import Placeholders
from .recording import CLOSED, Recording

AS_A_WHOLE: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DELETE_RECORDS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.OFFSET_DELETE,
        ApiKey.DELETE_GROUPS,
    }
)
"""Administration: the order of answers is that of the script."""

IN_ORDER: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.END_TXN,
        ApiKey.OFFSET_COMMIT,
    }
)
"""Of these a part's values have the order of the script; which parts come together depends on the client's timing."""

_TRY_AGAIN: Final = frozenset(
    code.name
    for code in (
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    )
)
MOST_DIFFERENCES: Final = 200
"""Of one API; what goes beyond is counted."""


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    client_id: str
    api: str
    field: FieldDifference


def answer_differences(left: Recording, right: Recording) -> Iterator[AnswerDifference]:
    ours, theirs = _by_api(left), _by_api(right)
    for client_id, api_key in sorted(ours.keys() | theirs.keys()):
        found = _of_one_api(api_key, ours.get((client_id, api_key)), theirs.get((client_id, api_key)))
        for number, each in enumerate(found):
            if number == MOST_DIFFERENCES:
                each = FieldDifference("…", "more differences", "more differences")
            yield AnswerDifference(client_id, api_name(api_key), each)
            if number == MOST_DIFFERENCES:
                break


@dataclass(slots=True)
class _OfOneApi:
    """The answers of one API to one client, in normal form, and the versions of the requests."""

    versions: dict[int, None] = field(default_factory=dict)
    answers: list[Any] = field(default_factory=list)


def _by_api(recording: Recording) -> dict[tuple[str, int], _OfOneApi]:
    placeholders = Placeholders()
    for each in recording.exchanges:
        if each.answer is not None:
            learn_topics(each.answer, placeholders)
    found: dict[tuple[str, int], _OfOneApi] = {}
    for each in recording.exchanges:
        of = found.setdefault((each.client_id, each.api_key), _OfOneApi())
        of.versions[each.version] = None
        of.answers.append(CLOSED if each.answer is None else normal_form(each.answer, placeholders))
    return found


def _asks_again(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_asks_again, value.values()))
    if isinstance(value, list):
        return any(map(_asks_again, value))
    return isinstance(value, str) and value in _TRY_AGAIN


def _of_one_api(api_key: int, left: _OfOneApi | None, right: _OfOneApi | None) -> Iterator[FieldDifference]:
    if left is None or right is None:
        yield FieldDifference("requests", *(MISSING if each is None else "asked" for each in (left, right)))
        return
    if left.versions.keys() != right.versions.keys():
        yield FieldDifference("version", *(", ".join(map(str, sorted(each.versions))) for each in (left, right)))
    if api_key in AS_A_WHOLE:
        yield from _pairs("", _without_repeats(_settled(left.answers)), _without_repeats(_settled(right.answers)))
        return
    ours, theirs = _by_part(left.answers), _by_part(right.answers)
    for path in [*ours, *(each for each in theirs if each not in ours)]:
        one, other = _settled(ours.get(path, [])), _settled(theirs.get(path, []))
        if api_key in IN_ORDER:
            yield from _pairs(path, _without_repeats(one), _without_repeats(other))
        else:
            yield from _pairs(path, *_beyond(_distinct(one), _distinct(other)))


def _by_part(answers: list[Any]) -> dict[str, list[Any]]:
    """The values of each part, in the order in which they came."""
    parts: dict[str, list[Any]] = {}
    for answer in answers:
        for path, value in _parts(answer, ""):
            parts.setdefault(path, []).append(value)
    return parts


def _parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Take an answer apart at its lists of entries with names."""
    if not isinstance(value, dict):
        yield path, value
        return
    own: dict[str, Any] = {}
    for name, each in value.items():
        names = [identity(entry) for entry in each] if isinstance(each, list) else []
        if not names or None in names or len(set(names)) < len(names):
            if each != []:
                own[name] = each
            continue
        for entry_name, entry in zip(names, each, strict=True):
            yield from _parts(entry, f"{path}.{name}[{entry_name}]".lstrip("."))
    if own:
        yield path, own


def _settled(values: list[Any]) -> list[Any]:
    return [each for each in values if not _asks_again(each)] or values


def _beyond(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return what each has that the other has not."""
    only_ours = [each for text, each in ours.items() if text not in theirs]
    only_theirs = [each for text, each in theirs.items() if text not in ours]
    if ours and theirs and not (only_ours and only_theirs):
        return list(filter(_has_error, only_ours)), list(filter(_has_error, only_theirs))
    return only_ours, only_theirs


def _pairs(path: str, left: list[Any], right: list[Any]) -> Iterator[FieldDifference]:
    for number, (one, other) in enumerate(zip_longest(left, right, fillvalue=MISSING), 1):
        place = f" (#{number})" if max(len(left), len(right)) > 1 else ""
        for each in field_differences(one, other, path):
            yield FieldDifference((each.path or "answer") + place, each.left, each.right)


def _has_error(value: Any) -> bool:
    """Tell whether an answer, or a part of it, has an error code, or is none."""
    if value == CLOSED:
        return True
    if isinstance(value, dict):
        return any(
            (name.endswith("error_code") and each != ErrorCode.NONE.name) or _has_error(each)
            for name, each in value.items()
        )
    return isinstance(value, list) and any(map(_has_error, value))


def _without_repeats(answers: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for each in answers:
        if not kept or kept[-1] != each:
            kept.append(each)
    return kept


def _distinct(answers: list[Any]) -> dict[str, Any]:
    return {json.dumps(each, sort_keys=True, default=str): each for each in answers}

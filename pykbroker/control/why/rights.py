"""Denials of late, whether they are so still, and the ACL that decides."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from pykbroker.metadata.image import MetadataImage
from pykbroker.security.acls.authorizer import DENIED_BY_ENTRY
from pykbroker.security.acls.entry import AccessControlEntry, EntryFilter
from pykbroker.security.acls.hosts import host_of
from pykbroker.security.acls.operations import Operation, Permission
from pykbroker.security.acls.resources import PatternType, ResourceType
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.denials import Denial
from pykbroker.server.runtime.log_lines import printable

from .sources import Sources
from .wording import client, counted, moment

MOST_LOOKED_AT: Final = 10_000
"""ACLs that are searched for the one that denies; that takes some milliseconds."""
_MOST_SHOWN: Final = 5
_EVERYBODY: Final = "User:*"
_ANY_HOST: Final = "*"


def denials_of_group(sources: Sources, group_id: str) -> Iterator[str]:
    """Return sentences on those who may not read the group, the newest first."""
    found = (
        (broker, denial)
        for broker, denial in _denials(sources)
        if denial.resource_type is ResourceType.GROUP and denial.name == group_id
    )
    for broker, denial in islice(found, _MOST_SHOWN):
        yield sentence(sources, broker, denial)


def denials_of_topic(sources: Sources, topic: str, client_ids: AbstractSet[str] | None) -> Iterator[tuple[str, bool]]:
    """Return sentences on those who may not read the topic, and whether that is so still.

    client_ids: of whom; None for everybody.
    """
    for broker, denial in _denials(sources):
        if denial.resource_type is not ResourceType.TOPIC or denial.name != topic:
            continue
        if denial.operation not in (Operation.READ, Operation.DESCRIBE):
            continue
        if client_ids is None or denial.client_id in client_ids:
            yield sentence(sources, broker, denial), is_denied(broker, denial)


def group_is_denied(sources: Sources, group_id: str) -> bool:
    """Tell whether somebody was denied the group lately who is denied it still."""
    return any(
        denial.resource_type is ResourceType.GROUP and denial.name == group_id and is_denied(broker, denial)
        for broker, denial in _denials(sources)
    )


def _denials(sources: Sources) -> Iterator[tuple[Broker, Denial]]:
    for broker in sources.brokers:
        if broker.authorizer is not None:
            for denial in broker.authorizer.denials:
                yield broker, denial


def is_denied(broker: Broker, denial: Denial) -> bool:
    assert broker.authorizer is not None
    verdict = broker.authorizer.verdict(
        denial.principal, denial.address, denial.operation, denial.resource_type, denial.name
    )
    return not verdict.is_allowed


def sentence(sources: Sources, broker: Broker, denial: Denial) -> str:
    assert broker.authorizer is not None
    what = f"{denial.operation.name} on {denial.resource_type.name} {printable(denial.name)}"
    who = f"{printable(denial.principal)} ({client(denial.client_id, denial.address)})"
    when = f"{counted(denial.count, 'time')}, last at {moment(denial.timestamp_ms)}"
    return f"{who} was denied {what} {when}: {decided_by(sources, broker, denial)}."


def decided_by(sources: Sources, broker: Broker, denial: Denial) -> str:
    """Return what decides about it now, the ACL itself where one denies it."""
    question = denial.principal, denial.address, denial.operation, denial.resource_type, denial.name
    known = sources.decided.get(question)
    if known is None:
        known = sources.decided[question] = _decided_by(sources.image, broker, denial)
    return known


def _decided_by(image: MetadataImage, broker: Broker, denial: Denial) -> str:
    assert broker.authorizer is not None
    question = denial.principal, denial.address, denial.operation, denial.resource_type, denial.name
    verdict = broker.authorizer.verdict(*question)
    if verdict.is_allowed:
        return f"by now it is allowed, since {verdict.reason}"
    if verdict != DENIED_BY_ENTRY:
        return verdict.reason
    for entry in islice(image.acls.values(), MOST_LOOKED_AT):
        if _denies(entry, denial):
            return f"{verdict.reason}: {printable(str(entry))}"
    return verdict.reason


def _denies(entry: AccessControlEntry, denial: Denial) -> bool:
    if entry.permission != Permission.DENY or entry.operation not in (denial.operation, Operation.ALL):
        return False
    if entry.principal not in (denial.principal, _EVERYBODY):
        return False
    if entry.host not in (host_of(denial.address), _ANY_HOST):
        return False
    return EntryFilter(denial.resource_type, denial.name, PatternType.MATCH).matches(entry)

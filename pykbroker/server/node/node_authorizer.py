"""The authorizer of a node follows the ACLs in the metadata, and writes what it denies into the log.

Kafka's counterparts are `StandardAuthorizer` with its audit log, and `AclPublisher`. Until this node has all that was
committed when it started, only super users may do anything. A large change of ACLs comes in portions, entry by entry.
"""

from __future__ import annotations

import logging
from typing import Final

from pykbroker.config.authorizer import AuthorizerConfig
from pykbroker.long_work import LongWork
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.security.acls.authorizer import LONGEST_REMEMBERED_NAME, StandardAuthorizer, Verdict
from pykbroker.security.acls.hosts import host_of
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import CLUSTER_NAME, ResourceType

from ..network.handlers import ConnectionState
from ..runtime.clock import Clock
from ..runtime.log_lines import RateLimitedLog, printable
from .denials import Denials

_log = logging.getLogger(__name__)


_MOST_REMEMBERED: Final = 10_000


class NodeAuthorizer:
    """The authorizer of one node. is_ready: the ACLs are loaded.

    What was allowed is remembered by what a request has at hand, until an entry changes: a record's way to its
    partition is longer by one lookup.
    """

    def __init__(self, config: AuthorizerConfig, clock: Clock) -> None:
        self._standard = StandardAuthorizer(
            config.super_users, allows_without_entries=config.allows_everyone_without_acls
        )
        self._denials = RateLimitedLog(_log, clock)
        self._allowed: set[tuple[str, str, int, int, str]] = set()
        self._clock = clock
        self.denials = Denials()
        """Those of late, for who asks."""
        self.is_ready = False

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Follow the image: a listener of it."""
        if changes.acls:
            self._allowed = set()
        for acl_id, before in changes.acls.items():
            if before is not None:
                self._standard.remove(before)
            now = image.acls.get(acl_id)
            if now is not None:
                self._standard.add(now)

    def note_applied(self) -> None:
        """Note that everything that was committed so far has come to `apply`."""
        self.is_ready = True

    def knows(self, connection: ConnectionState) -> bool:
        """Tell whether anything can be decided about this client: super users need no ACLs."""
        return self.is_ready or self._standard.is_super_user(connection.principal)

    def allows(
        self,
        connection: ConnectionState,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        is_logged: bool = True,
    ) -> bool:
        """Tell whether the client may do that. is_logged: False where it has not asked for this very resource."""
        principal, address = connection.principal, connection.client_address
        # The values of members, since the hash of a member takes Python 3.11 two calls.
        question = principal, address, operation._value_, resource_type._value_, name
        if question in self._allowed:
            return True
        if not self.knows(connection):
            return False
        verdict = self._standard.decide(principal, host_of(address), operation._value_, resource_type._value_, name)
        if not verdict.is_allowed:
            if is_logged:
                self._denials.info(*_line(verdict, connection, operation, resource_type, name))
                client_id = "" if connection.request is None else connection.request.client_id or ""
                now_ms = self._clock.now_ms()
                self.denials.note(principal, address, client_id, operation, resource_type, name, now_ms)
        elif _log.isEnabledFor(logging.DEBUG):
            _log.debug(*_line(verdict, connection, operation, resource_type, name))
        elif len(name) <= LONGEST_REMEMBERED_NAME:
            if len(self._allowed) >= _MOST_REMEMBERED:
                self._allowed = set()
            self._allowed.add(question)
        return verdict.is_allowed

    def verdict(
        self, principal: str, address: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Verdict:
        """Return what is decided now, without a line in the log."""
        return self._standard.decide(principal, host_of(address), operation._value_, resource_type._value_, name)

    def allows_on_cluster(self, connection: ConnectionState, *operations: Operation, is_logged: bool = True) -> bool:
        """Tell whether the client may do one of these; the last one is logged where it may not."""
        *others, last = operations
        kind = ResourceType.CLUSTER
        return any(self.allows(connection, each, kind, CLUSTER_NAME, is_logged=False) for each in others) or (
            self.allows(connection, last, kind, CLUSTER_NAME, is_logged=is_logged)
        )

    def allows_on_any(
        self, connection: ConnectionState, operation: Operation, resource_type: ResourceType
    ) -> LongWork[bool]:
        """Tell whether the client may do that with some resource of the type."""
        if not self.knows(connection):
            return False
        host = host_of(connection.client_address)
        return (yield from self._standard.decide_on_any(connection.principal, host, operation, resource_type))

    def allowed_operations(
        self, connection: ConnectionState, operations: int, resource_type: ResourceType, name: str
    ) -> int:
        """Return those of the operations, a bit field, that the client may do."""
        if not self.knows(connection):
            return 0
        host = host_of(connection.client_address)
        return self._standard.allowed_operations(connection.principal, host, operations, resource_type, name)


def _line(
    verdict: Verdict, connection: ConnectionState, operation: Operation, resource_type: ResourceType, name: str
) -> tuple[str, str, str, str, str, str, str]:
    return (
        "%s at %s asked for %s on %s %s: %s",
        printable(connection.principal),
        printable(connection.client_address),
        operation.name,
        resource_type.name,
        printable(name),
        verdict.reason,
    )

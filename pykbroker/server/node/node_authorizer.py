"""The authorizer of a node follows the ACLs in the metadata, and writes what it denies into the log.

Kafka's counterparts are `StandardAuthorizer` with its audit log, and `AclPublisher`. Until this node has all that was
committed when it started, only super users may do anything. A large change of ACLs comes in portions, entry by entry.
"""

from __future__ import annotations

import logging

from pykbroker.config.authorizer import AuthorizerConfig
from pykbroker.long_work import LongWork
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.security.acls.authorizer import StandardAuthorizer, Verdict
from pykbroker.security.acls.hosts import host_of
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import CLUSTER_NAME, ResourceType

from ..network.handlers import ConnectionState
from ..runtime.clock import Clock
from ..runtime.log_lines import RateLimitedLog, printable

_log = logging.getLogger(__name__)


class NodeAuthorizer:
    """The authorizer of one node. is_ready: the ACLs are loaded."""

    def __init__(self, config: AuthorizerConfig, clock: Clock) -> None:
        self._standard = StandardAuthorizer(
            config.super_users, allows_without_entries=config.allows_everyone_without_acls
        )
        self._denials = RateLimitedLog(_log, clock)
        self.is_ready = False

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Follow the image: a listener of it."""
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
        if not self.knows(connection):
            return False
        host = host_of(connection.client_address)
        verdict = self._standard.decide(connection.principal, host, operation, resource_type, name)
        if not verdict.is_allowed:
            if is_logged:
                self._denials.info(*_line(verdict, connection, operation, resource_type, name))
        elif _log.isEnabledFor(logging.DEBUG):
            _log.debug(*_line(verdict, connection, operation, resource_type, name))
        return verdict.is_allowed

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

"""The users of a secured broker in its metadata: their SCRAM credentials, and the ACLs that they begin with.

A user who is there stays as he is, with the rights that he has by now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pykbroker.client.acls import create_acls
from pykbroker.client.scram_users import describe_scram_users, set_scram_password
from pykbroker.config import ConfigurationError
from pykbroker.security.acls.entry import AccessControlEntry
from pykbroker.security.acls.operations import Operation, Permission
from pykbroker.security.acls.resources import WILDCARD, PatternType, ResourceType
from pykbroker.security.sasl.scram_credential import MECHANISMS, MIN_ITERATIONS
from pykbroker.server.node.node import NodeReady

from ..connect import open_cluster
from .client_files import PLAIN, java_properties
from .directory import SecureDirectory
from .users import ADMINISTRATOR

_OF_APPLICATIONS: Mapping[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DESCRIBE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}


async def prepare_clients(directory: SecureDirectory, ready: NodeReady) -> None:
    """Give users their rights, and write their clients' configurations. Raises ClientError, ConfigurationError."""
    secured = [each for each in ready.listeners if each.security_protocol == "SASL_SSL"]
    if not secured:
        raise ConfigurationError(f"--secure needs a SASL_SSL listener, and there is none among {ready.where}")
    bootstrap = ",".join(each.address for each in secured)
    await give_rights(directory, bootstrap)
    directory.write_client_files(bootstrap)


async def give_rights(directory: SecureDirectory, bootstrap: str) -> None:
    """Add the users who are not there, the administrator as the one who does it. Raises ClientError, CommandFailed."""
    admin = java_properties(directory.users[ADMINISTRATOR], directory.authority, bootstrap, PLAIN)
    async with open_cluster(bootstrap, admin, client_id="secure") as cluster:
        there = await describe_scram_users(cluster, list(directory.users))
        for name, user in directory.users.items():
            if name in there:
                continue
            if name != ADMINISTRATOR:  # who is a super user
                await create_acls(cluster, _of_application(name))
            for mechanism in MECHANISMS:
                await set_scram_password(cluster, name, mechanism, user.password, MIN_ITERATIONS)


def _of_application(name: str) -> Iterator[AccessControlEntry]:
    for resource_type, operations in _OF_APPLICATIONS.items():
        for operation in operations:
            yield AccessControlEntry(
                resource_type, WILDCARD, PatternType.LITERAL, f"User:{name}", WILDCARD, operation, Permission.ALLOW
            )

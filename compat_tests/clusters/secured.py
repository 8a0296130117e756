"""A cluster that lets nobody in who is no user of it: TLS and SASL between all nodes, an authorizer, delegation tokens.

The test itself comes over PLAINTEXT, anonymous and a super user; so `Cluster` asks its nodes as those of any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.acls.users import ANONYMOUS, AUTHORIZER, log_in, password
from compat_tests.brokers import Place, loopback_place
from compat_tests.certificates import Authority
from compat_tests.key_stores import write_pem, write_pem_trust
from compat_tests.ports import take_ports
from compat_tests.quota_requests import describe as describe_quotas
from compat_tests.sasl.modules import PLAIN_MODULE, SCRAM_MODULE
from compat_tests.sasl.raw_log_ins import scram_exchange, send_token, shake_hands
from compat_tests.tokens.asking import description
from compat_tests.tokens.token_broker import Token, log_in_by_token
from compat_tests.wire import Wire
from pykbroker.protocol.messages.acls import AclCreation, CreateAclsRequest, DescribeAclsRequest
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from pykbroker.security.sasl.scram_client import ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS

from .cluster import Cluster
from .layout import COMBINED, NodeSpec
from .nodes import Node

NODE = "node"
"""The user that nodes are at each other."""
_MECHANISM = MECHANISMS["SCRAM-SHA-512"]
_ITERATIONS = 4096
ANY, TOPIC, READ, WRITE, ALLOW = 1, 2, 3, 4, 3


class LogInRefused(Exception):
    """The node does not know the user by that password."""


@dataclass(frozen=True, slots=True)
class Doors:
    """Where users come to a node: over TLS, as other nodes do, and without. place: of its other ports."""

    place: Place
    over_tls: int
    sasl: int

    @classmethod
    def new(cls) -> Doors:
        return cls(loopback_place(), *take_ports(2))

    def listeners(self) -> str:
        host = self.place.host
        return (
            f"PLAINTEXT://{host}:{self.place.port},NODES://{host}:{self.over_tls},USERS://{host}:{self.sasl},"
            f"CONTROLLER://{host}:{self.place.controller_port}"
        )


class SecuredNodes:
    """What the nodes of a cluster are told, and what they say of users, rights, quotas and tokens."""

    def __init__(self, directory: Path, count: int) -> None:
        authority = Authority.root()
        self._trusted = write_pem_trust(directory / "ca.pem", authority)
        self._key_store = write_pem(directory / "server.pem", authority.server())
        self.doors = [Doors.new() for _ in range(count)]

    @property
    def places(self) -> Sequence[Place]:
        return [each.place for each in self.doors]

    @property
    def bootstrap(self) -> str:
        """Over TLS."""
        return ",".join(f"{each.place.host}:{each.over_tls}" for each in self.doors)

    def specs(self, kind: str) -> list[NodeSpec | str]:
        return [NodeSpec(kind, COMBINED, self._properties(each)) for each in self.doors]

    def client(self, user: str) -> dict[str, str]:
        """How librdkafka logs in."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self._trusted),
            "sasl.mechanism": _MECHANISM.name,
            "sasl.username": user,
            "sasl.password": password(user),
        }

    def _properties(self, doors: Doors) -> Mapping[str, str]:
        known = f'user_{NODE}="{password(NODE)}"'
        jaas = f'{PLAIN_MODULE} required username="{NODE}" password="{password(NODE)}" {known};'
        properties = {
            **AUTHORIZER,
            "super.users": f"User:{ANONYMOUS};User:{NODE}",
            "listeners": doors.listeners(),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,NODES:SASL_SSL,USERS:SASL_PLAINTEXT,"
            "CONTROLLER:SASL_SSL",
            "inter.broker.listener.name": "NODES",
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *MECHANISMS)),
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._trusted),
            "delegation.token.secret.key": "the secret of this cluster",
        }
        for listener in ("nodes", "users", "controller"):
            properties[f"listener.name.{listener}.plain.sasl.jaas.config"] = jaas
        for listener in ("nodes", "users"):
            for mechanism in MECHANISMS:
                key = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
                properties[key] = f"{SCRAM_MODULE} required;"
        return properties

    def users_door(self, node: Node) -> tuple[str, int]:
        doors = self.doors[node.node_id - 1]
        return doors.place.host, doors.sasl

    @contextmanager
    def logged_in(self, node: Node, user: str, secret: str | None = None) -> Iterator[Wire]:
        """Raises LogInRefused. secret: another password than the user's."""
        exchange = scram_exchange(_MECHANISM, ScramPassword(user, password(user) if secret is None else secret))
        with Wire(self.users_door(node)) as wire:
            shake_hands(wire, _MECHANISM.name)
            token = exchange.step(b"")
            while not exchange.is_complete:
                answer = send_token(wire, token)
                if answer.error_code:
                    raise LogInRefused(user)
                token = exchange.step(answer.auth_bytes)
            yield wire

    def sees(self, node: Node, user: str, topic: str, *, secret: str | None = None) -> bool:
        """Whether the user is let in by the node with that password, and is told of the topic."""
        try:
            with self.logged_in(node, user, secret) as wire:
                return _is_told_of(wire, topic)
        except LogInRefused:
            return False

    def sees_by_token(self, node: Node, token: Token, topic: str) -> bool:
        with Wire(self.users_door(node)) as wire:
            return not log_in_by_token(wire, token).error_code and _is_told_of(wire, topic)

    def known(self, node: Node) -> dict[str, Any]:
        """All that a node tells of who may do what, and how much of it."""
        with Wire(node.address) as wire:
            users: Any = wire.call(DescribeUserScramCredentialsRequest(users=None), 0)
            every = DescribeAclsRequest(
                resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
            )
            rights: Any = wire.call(every, 3)
        with Wire(self.users_door(node)) as wire:
            log_in(wire, NODE)
            tokens: Any = wire.call(description(), 3)
        return {
            "users": {
                each.user: sorted((one.mechanism, one.iterations) for one in each.credential_infos)
                for each in users.results
            },
            "rights": sorted(
                (each.resource_type, each.resource_name, one.principal, one.operation, one.permission_type)
                for each in rights.resources
                for one in each.acls
            ),
            "quotas": describe_quotas(node),
            "tokens": {
                each.token_id: (each.principal_name, each.expiry_timestamp, each.max_timestamp, bytes(each.hmac))
                for each in tokens.tokens
            },
        }


def _is_told_of(wire: Wire, topic: str) -> bool:
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    told: Any = wire.call(wanted, 9)
    return not told.topics[0].error_code


def set_user(cluster: Cluster, name: str) -> None:
    salted = _MECHANISM.salted_password(password(name), b"salt", _ITERATIONS)
    change = ScramCredentialUpsertion(
        name=name, mechanism=_MECHANISM.type, iterations=_ITERATIONS, salt=b"salt", salted_password=salted
    )
    with Wire(cluster.brokers()[0].address) as wire:
        answer: Any = wire.call(AlterUserScramCredentialsRequest(upsertions=[change]), 0)
    assert [each.error_code for each in answer.results] == [0], answer


def allow(cluster: Cluster, user: str, topic: str, *operations: int) -> None:
    entries = [
        AclCreation(
            resource_type=TOPIC,
            resource_name=topic,
            resource_pattern_type=3,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=ALLOW,
        )
        for operation in operations
    ]
    with Wire(cluster.brokers()[0].address) as wire:
        answer: Any = wire.call(CreateAclsRequest(creations=entries), 3)
    assert {each.error_code for each in answer.results} == {0}, answer

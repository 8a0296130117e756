"""Nodes of both kinds that show each other tokens, to brokers and to the controller: each gets its own from a token
endpoint, by its name and secret, and a new one when that is about to expire.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from compat_tests.apache_kafka.broker import CLUSTER_ID, ApacheKafka
from compat_tests.authorization_server import AuthorizationServer, running
from compat_tests.brokers import BrokerProcess, Pykbroker, pykbroker_command
from compat_tests.certificates import Authority
from compat_tests.conftest import assert_all_went_well, watch_log
from compat_tests.key_stores import write_pem_trust
from compat_tests.mixed_nodes import join, replicate
from pykbroker.security.sasl.oauthbearer.allowed_urls import PROPERTY

from .bearers import MODULE, PACKAGE, good_document, token

LIFETIME_S = 8
"""Of nodes' tokens: sessions end while they work, and they go on without a gap."""


def properties(issuer: AuthorizationServer, trusted: Path) -> dict[str, str]:
    found = {
        "listener.security.protocol.map": "BROKERS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "controller.listener.names": "CONTROLLER",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        "sasl.login.refresh.min.period.seconds": "0",
        "sasl.login.refresh.buffer.seconds": "0",
        "offsets.topic.replication.factor": "1",
        "process.roles": "broker,controller",
    }
    trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{trusted}"'
    for listener in ("brokers", "controller"):
        prefix = f"listener.name.{listener}.oauthbearer.sasl"
        found |= {
            f"{prefix}.server.callback.handler.class": f"{PACKAGE}.OAuthBearerValidatorCallbackHandler",
            f"{prefix}.login.callback.handler.class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
            f"{prefix}.oauthbearer.jwks.endpoint.url": issuer.keys_url,
            f"{prefix}.oauthbearer.expected.audience": "kafka",
            f"{prefix}.oauthbearer.expected.issuer": "https://issuer.example.org/",
            f"{prefix}.oauthbearer.token.endpoint.url": issuer.token_url,
            f"{prefix}.oauthbearer.client.credentials.client.id": "node",
            f"{prefix}.oauthbearer.client.credentials.client.secret": "node-secret",
            f"{prefix}.jaas.config": f"{MODULE} required {trust};",
        }
    return found


def node(
    make: type[BrokerProcess],
    directory: Path,
    number: int,
    first: BrokerProcess | None,
    given: dict[str, str],
    urls: str,
) -> BrokerProcess:
    """The first node is broker and controller; others are brokers of its cluster."""
    broker = make(directory / f"node-{number}", given)
    options = [f"{name}=-D{PROPERTY}={urls}" for name in ("KAFKA_OPTS", "JAVA_TOOL_OPTIONS")]
    broker.place = replace(broker.place, enter=("env", *options))
    join(broker, number, first)
    if make is Pykbroker:
        command = pykbroker_command("format", "-t", CLUSTER_ID, "-c", str(broker.properties_file))
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return broker


@pytest.mark.java
@pytest.mark.parametrize(
    "kinds",
    [(Pykbroker, Pykbroker, ApacheKafka), (ApacheKafka, Pykbroker, Pykbroker)],
    ids=["pykbroker leads the quorum", "Kafka leads the quorum"],
)
def test_brokers_replicate_with_tokens(
    kinds: tuple[type[BrokerProcess], ...], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    authority = Authority.root()
    trusted = write_pem_trust(tmp_path / "trusted.pem", authority)
    server = AuthorizationServer(
        good_document(), {"node": "node-secret"}, lambda name: token(LIFETIME_S, sub=name, iat=int(time.time()))
    )
    nodes: list[BrokerProcess] = []
    with running(server, authority, tmp_path) as issuer:
        given, urls = properties(issuer, trusted), f"{issuer.keys_url},{issuer.token_url}"
        try:
            for number, kind in enumerate(kinds, 1):
                nodes.append(node(kind, tmp_path, number, nodes[0] if nodes else None, given, urls))
                watch_log(request.node, nodes[-1])
                nodes[-1].start()
            logged_in = {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "oauth_cb": lambda _: (token(), time.time() + 300),
            }
            replicate(nodes, logged_in, 2.5 * LIFETIME_S)
        finally:
            for each in reversed(nodes):
                each.stop()
    for each in nodes:
        assert_all_went_well(each)
    assert issuer.asked.count("/token") > 2 * len(nodes)

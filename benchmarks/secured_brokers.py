"""Brokers under measurement with TLS and SASL listeners beside their PLAINTEXT one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from compat_tests.brokers import BrokerProcess
from compat_tests.certificates import Authority
from compat_tests.key_stores import write_pem, write_pem_trust
from compat_tests.ports import take_ports
from compat_tests.sasl.modules import SCRAM_MODULE

USER, PASSWORD = "alice", "alice-secret"
_CLIENTS = 8


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    """Where the listeners are. authority: the file that clients trust."""

    broker: BrokerProcess
    tls: tuple[str, int]
    sasl: tuple[str, int]
    authority: Path

    @property
    def tls_bootstrap(self) -> str:
        return f"{self.tls[0]}:{self.tls[1]}"

    @property
    def java_properties(self) -> dict[str, str]:
        """Of a client over TLS 1.3."""
        return {
            "security.protocol": "SSL",
            "ssl.enabled.protocols": "TLSv1.3",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
        }

    @property
    def librdkafka_properties(self) -> dict[str, str]:
        return {"security.protocol": "SSL", "ssl.ca.location": str(self.authority)}


def start_secured(broker: BrokerProcess) -> SecuredBroker:
    """Give a prepared broker its listeners, and start it."""
    tls_port, sasl_port = take_ports(2)
    authority = Authority.root()
    server = write_pem(broker.directory / "server.pem", authority.server())
    trusted = write_pem_trust(broker.directory / "ca.pem", authority)
    broker.properties |= {
        "listeners": f"PLAINTEXT://{broker.bootstrap},CONTROLLER://127.0.0.1:{broker.controller_port},"
        f"TLS://127.0.0.1:{tls_port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT",
        "listener.name.tls.ssl.keystore.type": "PEM",
        "listener.name.tls.ssl.keystore.location": str(server),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    }
    broker.write_properties()
    broker.start()
    return SecuredBroker(broker, ("127.0.0.1", tls_port), ("127.0.0.1", sasl_port), trusted)


def rate_of(step: Callable[[], None], count: int) -> float:
    """How often a second the step is done by eight clients at a time."""
    with ThreadPoolExecutor(_CLIENTS) as clients:
        for _ in clients.map(lambda _: step(), range(_CLIENTS)):  # each has begun once before the time counts
            pass
        began = perf_counter()
        for _ in clients.map(lambda _: step(), range(count)):
            pass
        return count / (perf_counter() - began)

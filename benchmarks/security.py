"""The price of security: TLS, log-ins, and the rights and quotas that each request is asked for."""

from __future__ import annotations

import socket
import ssl
import struct
from statistics import median

from benchmarks.bench import PARTITIONS, Bench, Figures, Measure
from benchmarks.brokers import new_broker, rss_bytes
from benchmarks.consuming import consume
from benchmarks.secured_brokers import PASSWORD, USER, SecuredBroker, rate_of, start_secured
from compat_tests.brokers import BrokerProcess
from compat_tests.quota_requests import set_quotas
from compat_tests.sasl.raw_log_ins import log_in, scram_exchange
from compat_tests.wire import Wire
from pykbroker.protocol.messages.acls import AclCreation, CreateAclsRequest
from pykbroker.protocol.messages.scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from pykbroker.security.sasl.scram_client import ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS

_TOPIC = "kilobyte"
_PRODUCER = {"acks": "all", "linger.ms": "5", "batch.size": "65536"}
_IDLE = 5000
_HANDSHAKES = 4000
_LOG_INS = 4000
_ACLS = 1000
_PAIRS = 3
_SCRAM = MECHANISMS["SCRAM-SHA-512"]
_SALT = b"1omfro7zwmumr3umxudzyj6scf"
_ITERATIONS = 4096
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}

_secured: dict[int, SecuredBroker] = {}
"""By the process: measures of one scene follow each other on one broker."""


def produce_over_tls(bench: Bench) -> Figures:
    """ProducerPerformance over TLS 1.3, as `produce 1 kB` else."""
    secured = start_secured(bench.broker)
    _secured[bench.broker.pid] = secured
    bench.create_topic(_TOPIC, PARTITIONS)
    records, config = bench.count(500_000), _PRODUCER | secured.java_properties
    return bench.with_cpu(lambda: {"MB/s": bench.tools.produce(secured.tls_bootstrap, _TOPIC, records, 1000, config)})


def consume_over_tls(bench: Bench) -> Figures:
    """librdkafka over TLS 1.3, as `consume 1 kB` else."""
    secured = _secured[bench.broker.pid]
    config = secured.librdkafka_properties
    consume(secured.tls_bootstrap, _TOPIC, config=config)
    return bench.with_cpu(lambda: {"MB/s": consume(secured.tls_bootstrap, _TOPIC, config=config)})


def handshakes(bench: Bench) -> Figures:
    """New connections, each with a whole handshake of TLS 1.3 and one request; no session is resumed."""
    secured = _secured[bench.broker.pid]
    context = ssl.create_default_context(cafile=str(secured.authority))
    context.minimum_version = ssl.TLSVersion.TLSv1_3

    def connect() -> None:
        with _encrypted(secured.tls, context):
            pass

    return bench.with_cpu(lambda: {"handshakes/s": rate_of(connect, bench.count(_HANDSHAKES))})


def log_ins(bench: Bench) -> Figures:
    """New connections without TLS, each of which logs in by SCRAM-SHA-512. The password is hashed once for all."""
    secured = _secured[bench.broker.pid]
    change = ScramCredentialUpsertion(
        name=USER,
        mechanism=_SCRAM.type,
        iterations=_ITERATIONS,
        salt=_SALT,
        salted_password=_SCRAM.salted_password(PASSWORD, _SALT, _ITERATIONS),
    )
    with Wire(bench.broker.address) as wire:
        wire.call(AlterUserScramCredentialsRequest(upsertions=[change]), 0)
    password = ScramPassword(USER, PASSWORD)

    def once() -> None:
        log_in(secured.sasl, _SCRAM.name, scram_exchange(_SCRAM, password))

    return bench.with_cpu(lambda: {"log-ins/s": rate_of(once, bench.count(_LOG_INS))})


def idle_tls_connections(bench: Bench) -> Figures:
    """5,000 connections over TLS 1.3 that have asked one thing, and say nothing any more."""
    secured = _secured.pop(bench.broker.pid)
    context = ssl.create_default_context(cafile=str(secured.authority))
    before = rss_bytes(bench.broker)
    connections = []
    try:
        for _ in range(_IDLE):
            connections.append(_encrypted(secured.tls, context))
        return {"kB each": (rss_bytes(bench.broker) - before) / _IDLE / 1e3}
    finally:
        for connection in connections:
            connection.close()


def rights_and_quotas(bench: Bench) -> Figures:
    """`produce 1 kB` on PLAINTEXT with an authorizer, 1,000 ACLs and quotas, beside a broker without, in turns."""
    guarded = new_broker(type(bench.broker), bench.broker.directory.parent, AUTHORIZED)
    guarded.start()
    try:
        guard = Bench(guarded, bench.tools, bench.scale)
        for each in (bench, guard):
            each.create_topic(_TOPIC, PARTITIONS)
        _give_rights(guarded)
        records = bench.count(500_000)
        for each in (bench, guard):
            bench.tools.produce(each.broker.bootstrap, _TOPIC, records // 5, 1000, _PRODUCER)
        found: list[list[float]] = [[], []]
        for number in range(_PAIRS):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            for which in order:
                broker = (bench.broker, guarded)[which]
                found[which].append(bench.tools.produce(broker.bootstrap, _TOPIC, records, 1000, _PRODUCER))
        off, on = map(median, found)
        return {"MB/s off": off, "MB/s on": on, "on / off": on / off}
    finally:
        guarded.close()


def _give_rights(broker: BrokerProcess) -> None:
    """The topic's rights are those of the client alone; the others are those of other users on other topics."""
    entries = [("kilobyte", "User:ANONYMOUS")] + [(f"topic-{each}", f"User:user-{each}") for each in range(_ACLS - 1)]
    creations = [
        AclCreation(
            resource_type=2,
            resource_name=topic,
            resource_pattern_type=3,
            principal=principal,
            host="*",
            operation=2,
            permission_type=3,
        )
        for topic, principal in entries
    ]
    with Wire(broker.address) as wire:
        wire.call(CreateAclsRequest(creations=creations), 3)
    set_quotas(broker, {"user": "ANONYMOUS"}, {"producer_byte_rate": 1e10, "request_percentage": 1e5})


def _encrypted(address: tuple[str, int], context: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection whose handshake the broker has finished, too: it has answered ApiVersions."""
    plain = socket.create_connection(address)
    try:
        connection = context.wrap_socket(plain, server_hostname="127.0.0.1")
        connection.sendall(_API_VERSIONS)
        answer = connection.recv(65536)
        size = 4 + int.from_bytes(answer[:4], "big")
        while len(answer) < size:
            answer += connection.recv(65536)
        return connection
    except BaseException:
        plain.close()
        raise


TLS_AND_SASL: dict[str, Measure] = {
    "TLS 1.3: produce 1 kB": produce_over_tls,
    "TLS 1.3: consume 1 kB": consume_over_tls,
    "TLS 1.3: handshakes": handshakes,
    "SCRAM log-ins": log_ins,
    "5,000 idle TLS connections": idle_tls_connections,
}
"""In this order, on one broker, which the first one starts."""
RIGHTS: dict[str, Measure] = {"authorizer, 1,000 ACLs and quotas": rights_and_quotas}

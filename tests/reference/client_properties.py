"""The page of clients' properties: what `--command-config` takes, and what `produce`, `consume` and `perf` do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pykbroker.cli.client_keys import NOT_ACTED_ON, OF_OTHER_CLIENTS
from pykbroker.cli.perf_consume import MAX_BYTES
from pykbroker.cli.producer_settings import ProducerSettings
from pykbroker.client.from_properties import SECURITY_PROTOCOLS
from pykbroker.client.group_consumer import HEARTBEAT_INTERVAL_MS
from pykbroker.client.membership import SESSION_TIMEOUT_MS

from .words import MADE, code, listed

_PRODUCER: Final = ProducerSettings.from_properties({})
OF_ALL: Final = {
    "client.id": ("the command's name", "What the broker calls the client, in its log and in quotas."),
    "default.api.timeout.ms": ("60000", "How long an operation may take, with all that is tried again."),
    "request.timeout.ms": ("30000", "How long one request waits for its answer."),
    "sasl.jaas.config": (
        "",
        "The login module, with user and password, as in Java; else the section `KafkaClient` of the "
        "JAAS file in `KAFKA_OPTS`.",
    ),
    "sasl.mechanism": ("GSSAPI", "`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`; GSSAPI is not offered."),
    "security.protocol": ("PLAINTEXT", f"{listed([code(each) for each in SECURITY_PROTOCOLS])}."),
}
OF_PRODUCERS: Final = {
    "acks": ("all", "`all`, `1` or `0`."),
    "batch.size": (str(_PRODUCER.batch_size_bytes), "Bytes of a batch."),
    "compression.type": (_PRODUCER.compression.name.lower(), "`none`, `gzip`, `snappy`, `lz4` or `zstd`."),
    "delivery.timeout.ms": (str(_PRODUCER.delivery_timeout_ms), "How long a record may take until it is given up."),
    "enable.idempotence": ("true with acks=all", "Whether a record that is sent again is written once."),
    "linger.ms": (str(_PRODUCER.linger_ms), "How long a batch waits for more records."),
    "transactional.id": ("", "`perf produce` alone: records are written in transactions."),
}
OF_CONSUMERS: Final = {
    "auto.offset.reset": (
        "latest; earliest where there is an end",
        "`earliest` or `latest`: where a group begins that has no offsets.",
    ),
    "fetch.max.bytes": (str(MAX_BYTES), "`perf consume` alone: bytes of one answer."),
    "group.id": ("", "As `--group`."),
    "heartbeat.interval.ms": (str(HEARTBEAT_INTERVAL_MS), "How often a member of a group sends a heartbeat."),
    "isolation.level": ("read_uncommitted", "`read_committed` shows records of committed transactions alone."),
    "session.timeout.ms": (str(SESSION_TIMEOUT_MS), "After so long without a heartbeat a member of a group is gone."),
}


def page() -> str:
    lines = [MADE, "", *_INTRODUCTION.splitlines()]
    lines += ["", "## Of every command", "", *_table(OF_ALL), *_FAMILIES.splitlines()]
    lines += ["", "## Of producers", "", "`produce` and `perf produce`, by `--command-property KEY=VALUE` as well.", ""]
    lines += [*_table(OF_PRODUCERS), "", "## Of consumers", "", "`consume` and `perf consume`, in the same way.", ""]
    lines += [*_table(OF_CONSUMERS), "", *_OTHERS.splitlines(), ""]
    lines += ["| of librdkafka | here |", "|---|---|"]
    lines += [f"| {code(name)} | {_as_code(text)} |" for name, text in sorted(OF_OTHER_CLIENTS.items())]
    warned = listed([code(each) for each in NOT_ACTED_ON], "and")
    lines += [
        "",
        f"Of {warned} and `sasl.kerberos.…`, which Java's clients act on, a warning says that they have no effect.",
    ]
    return "\n".join(lines) + "\n"


def _table(rows: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    yield from ("| property | default | |", "|---|---|---|")
    yield from (f"| {code(name)} | {default} | {text} |" for name, (default, text) in sorted(rows.items()))


def _as_code(text: str) -> str:
    return ", with ".join(code(each) for each in text.split(", with "))


_INTRODUCTION: Final = """# Properties of commands

A file for `--command-config` has the properties of Kafka's Java clients, one `KEY=VALUE` a line, so that one file
serves both. Properties that the commands do not act on are ignored, but for those that protect
([configuration.md](../configuration.md))."""
_FAMILIES: Final = """
Keys of `ssl.…` are those of [a node](broker.md#tls): `ssl.truststore.location`, `.type`, `.password` or
`.certificates`, the same of `ssl.keystore`, `ssl.endpoint.identification.algorithm`, `ssl.enabled.protocols`,
`ssl.cipher.suites`. Keys of `sasl.oauthbearer.…` and `sasl.login.…` are those of [a node](broker.md#sasl-and-tokens),
as far as they are about having a token."""
_OTHERS: Final = """## Names that do not count

A key of `security.`, `ssl.` or `sasl.` that no client of Kafka's has is an error that names the one that was meant,
since its writer believes that it protects."""

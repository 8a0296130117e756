"""One ready configuration for each kind of client: Java's, librdkafka's, kafka-python's, Spark's, and of commands."""

from __future__ import annotations

import json
from pathlib import Path

from .users import ADMINISTRATOR, APPLICATION, User

MECHANISM = "SCRAM-SHA-512"
PLAIN = "PLAIN"
_MODULES = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    MECHANISM: "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_HEADER = "# {user}, for {who}. `pykbroker start --secure` writes this file at each start.\n"


def java_properties(user: User, authority: Path, bootstrap: str, mechanism: str = MECHANISM) -> dict[str, str]:
    """Settings of Java's clients, which are those of Kafka's tools and of `--command-config`, too."""
    line = f'{_MODULES[mechanism]} required username="{user.name}" password="{user.password}";'
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": line,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority),
    }


def client_files(users: dict[str, User], authority: Path, bootstrap: str) -> dict[str, bytes]:
    """The files by their names. authority: its certificate. bootstrap: `host:port,…` of the broker."""
    admin, app = users[ADMINISTRATOR], users[APPLICATION]
    of_admin, of_app = (java_properties(user, authority, bootstrap) for user in (admin, app))
    librdkafka = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": PLAIN,  # under TLS; librdkafka before 2.8 repeats a wrong nonce in SCRAM
        "sasl.username": app.name,
        "sasl.password": app.password,
        "ssl.ca.location": str(authority),
    }
    kafka_python: dict[str, object] = {
        "bootstrap_servers": bootstrap.split(","),
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": MECHANISM,
        "sasl_plain_username": app.name,
        "sasl_plain_password": app.password,
        "ssl_cafile": str(authority),
    }
    spark: dict[str, object] = {f"kafka.{key}": value for key, value in of_app.items()}
    return {
        "admin.properties": _properties(of_admin, admin, "`--command-config` of pykbroker's and Kafka's commands"),
        "java.properties": _properties(of_app, app, "Java's clients"),
        "librdkafka.properties": _properties(librdkafka, app, "confluent-kafka, kcat -F and others of librdkafka"),
        "kafka-python.json": _json(kafka_python),
        "spark.json": _json(spark),
    }


def _properties(values: dict[str, str], user: User, who: str) -> bytes:
    lines = "".join(f"{key}={value}\n" for key, value in values.items())
    return (_HEADER.format(user=user.name, who=who) + lines).encode()


def _json(values: dict[str, object]) -> bytes:
    return (json.dumps(values, indent=2) + "\n").encode()

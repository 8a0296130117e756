"""The page of environment variables: those of the container, and the few that the program itself reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pykbroker.container import apache, bitnami
from pykbroker.container.log_levels import LOG_LEVEL, LOGGERS
from pykbroker.container.names import WITHOUT_KEY, WITHOUT_MEANING

from .words import MADE, code

OF_BOTH: Final = {
    "CLUSTER_ID": "The cluster for which an empty volume is formatted; a formatted one keeps its id.",
    "KAFKA_CLUSTER_ID": "The same.",
    "KAFKA_KRAFT_CLUSTER_ID": "The same, by Bitnami's name.",
    LOG_LEVEL: "The level of the log, in log4j's words.",
    LOGGERS: "Levels of single loggers, as `pykbroker.raft=DEBUG,…`; Kafka's loggers mean nothing.",
    "KAFKA_OPTS": "`-Djava.security.auth.login.config=FILE` names a JAAS file, and "
    "`-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=…` the addresses that may be asked for tokens; other options of "
    "Java mean nothing.",
    "KAFKA_SSL_KEYSTORE_FILENAME": "The name of a file in `/etc/kafka/secrets`, for `ssl.keystore.location`.",
    "KAFKA_SSL_TRUSTSTORE_FILENAME": "The same for `ssl.truststore.location`.",
    "KAFKA_SSL_KEY_CREDENTIALS": "The name of a file there that has `ssl.key.password`.",
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "The same for `ssl.keystore.password`.",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "The same for `ssl.truststore.password`.",
}
OF_BITNAMI: Final = {
    "KAFKA_BROKER_USER": "A user, where `KAFKA_CLIENT_USERS` is not given.",
    "KAFKA_BROKER_PASSWORD": "The password of that user.",
    "KAFKA_CERTIFICATE_PASSWORD": "The password of stores and of the private key.",
    "KAFKA_CLIENT_USERS": "Users of listeners with log-ins, with commas between them.",
    "KAFKA_CLIENT_PASSWORDS": "Their passwords, as many as there are users.",
    "KAFKA_CONTROLLER_USER": "With whom nodes log in to controllers.",
    "KAFKA_CONTROLLER_PASSWORD": "The password of that user.",
    "KAFKA_CONTROLLER_QUORUM_VOTERS_COMMAND": "A shell command that prints `controller.quorum.voters`.",
    "KAFKA_INITIAL_CONTROLLERS": "The first voters of a dynamic quorum.",
    "KAFKA_INTER_BROKER_USER": "With whom brokers log in to each other.",
    "KAFKA_INTER_BROKER_PASSWORD": "The password of that user.",
    "KAFKA_LOGS_DIRS": "Another name for `KAFKA_LOG_DIRS`.",
    "KAFKA_MAX_MESSAGE_BYTES": "Another name for `KAFKA_MESSAGE_MAX_BYTES`.",
    "KAFKA_MOUNTED_CONF_DIR": "Where mounted files are, in place of `/bitnami/kafka/config`.",
    "KAFKA_NODE_ID_COMMAND": "A shell command that prints `node.id`.",
    "KAFKA_SEGMENT_BYTES": "Another name for `KAFKA_LOG_SEGMENT_BYTES`.",
    "KAFKA_TLS_CLIENT_AUTH": "`required` (the default), `requested` or `none`; `KAFKA_TLS_NAME_CLIENT_AUTH` for one "
    "listener.",
    "KAFKA_TLS_TRUSTSTORE_FILE": "The file of the trust store, in place of the one in the directory of certificates.",
    "KAFKA_TLS_TYPE": "`JKS` (the default) or `PEM`.",
}
_SAID_NOTHING_OF: Final = ("ALLOW_PLAINTEXT_LISTENER", "BITNAMI_DEBUG", "KAFKA_SKIP_KRAFT_STORAGE_INIT")
OF_THE_PROGRAM: Final = {
    "KAFKA_OPTS": "Read by nodes and commands outside of a container, too: the JAAS file, and the addresses that may "
    "be asked for tokens ([security.md](../security.md)).",
    "NO_COLOR": "No colours, whatever the terminal.",
    "PYKBROKER_CTL": "`HOST:PORT` of a broker's control, for `ctl`, `why` and `doctor` ([control.md](../control.md)).",
    "PYKBROKER_LOOP_BOUND_MS": "From how long on a step of the event loop is told in the log.",
    "PYKBROKER_SPARK_IVY": "Where Spark's connector is kept ([spark.md](../spark.md)).",
    "NOTIFY_SOCKET": "Set by systemd, which is told when a node serves.",
}


def documented() -> set[str]:
    """Return the variables of the container that the page names as such that set no key by the rule."""
    return {*OF_BOTH, *OF_BITNAMI, *_SAID_NOTHING_OF, *WITHOUT_KEY}


def special() -> set[str]:
    """Return the variables of the container for which the code has a meaning of their own."""
    of_bitnami = {*bitnami.WITHOUT_KEY, *bitnami.ALIASES, *bitnami.COMMANDS}
    return {*of_bitnami, *apache.SECRETS, *WITHOUT_KEY, LOG_LEVEL, LOGGERS, "CLUSTER_ID", "KAFKA_OPTS"}


def page() -> str:
    lines = [MADE, "", *_INTRODUCTION.splitlines()]
    lines += ["", "## Of both images", "", *_table(OF_BOTH), "", "## Of Bitnami's image", "", *_table(OF_BITNAMI)]
    lines += ["", *_WITHOUT_MEANING.splitlines(), "", *(f"- {code(each)}" for each in sorted(WITHOUT_MEANING))]
    silent = ", ".join(code(each) for each in sorted({*_SAID_NOTHING_OF, *WITHOUT_KEY}))
    lines += ["", f"Nothing is said of {silent}, nor of what Kubernetes sets for services."]
    lines += ["", *_PROGRAM.splitlines(), "", *_table(OF_THE_PROGRAM)]
    return "\n".join(lines) + "\n"


def _table(meanings: Mapping[str, str]) -> Iterator[str]:
    yield from ("| variable | |", "|---|---|")
    yield from _rows(sorted(meanings.items()))


def _rows(meanings: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"| {code(name)} | {text} |" for name, text in meanings)


_INTRODUCTION: Final = """# Environment variables

`pykbroker container` and the image read them; [container.md](../container.md) says what wins, and where files are.

`KAFKA_` and a [key of a node](broker.md) in upper case, with `_` for a dot, `__` for an underscore and `___` for a
hyphen, sets that key: `KAFKA_NUM_PARTITIONS`. `KAFKA_CFG_NUM_PARTITIONS`, Bitnami's form, is the same. With `_FILE`
behind it a variable names a file that has the value, as secrets are mounted. Each key's entry has its variable. A
variable that becomes a key which nobody knows is ignored, with a line in the log that says which one may be meant."""
_WITHOUT_MEANING: Final = """## Without a meaning here

Variables of Java, of clients, and of former releases. One line of the log names those that are set; so it does for
`KAFKA_ZOOKEEPER_…`, `KAFKA_CFG_ZOOKEEPER_…` and `KAFKA_CONFLUENT_…`."""
_PROGRAM: Final = """## Of the program

What `pykbroker` reads outside of a container. No key of a node is read from the environment there."""

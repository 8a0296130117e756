"""Names of variables: the key that each of them sets, and those that set none.

The rule is that of Kafka's own image: `KAFKA_` is left out, `_` is a dot, `__` an underscore and `___` a hyphen.
Bitnami's is the same with `KAFKA_CFG_`, where `SASL_SSL` and `SASL_PLAINTEXT` stay names. Neither image looks at the
key.
"""

from __future__ import annotations

import difflib
import re
from typing import Final

from pykbroker.config import is_of_a_listener, node_keys
from pykbroker.config.authorizer import OF_THE_AUTHORIZER
from pykbroker.config.own_keys import CONSOLE_CLIENT, is_of_web_tls

PREFIX: Final = "KAFKA_"
BITNAMI_PREFIX: Final = "KAFKA_CFG_"

WITHOUT_MEANING: Final = frozenset(
    {
        "JAVA_TOOL_OPTIONS",
        "JMX_PORT",
        "KAFKA_CFG_INTER_BROKER_PROTOCOL_VERSION",
        "KAFKA_CFG_LOG_MESSAGE_FORMAT_VERSION",
        "KAFKA_CFG_MAX_PARTITION_FETCH_BYTES",
        "KAFKA_CFG_MAX_REQUEST_SIZE",
        "KAFKA_CLIENT_LISTENER",
        "KAFKA_CLIENT_LISTENER_NAME",
        "KAFKA_CLIENT_SASL_MECHANISM",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_INTER_BROKER_PROTOCOL_VERSION",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG_MESSAGE_FORMAT_VERSION",
        "KAFKA_SECURITY_PROTOCOL",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    }
)
"""Variables of Java, of clients and of former releases, which change nothing here."""

_FAMILIES_WITHOUT_MEANING: Final = ("KAFKA_CONFLUENT_", "KAFKA_ZOOKEEPER_", "KAFKA_CFG_ZOOKEEPER_")
WITHOUT_KEY: Final = frozenset({"KAFKA_ENABLE_KRAFT", "KAFKA_HOME", "KAFKA_VERSION"})
"""Variables that say what is so anyhow."""

_OF_KUBERNETES: Final = re.compile(
    r"KAFKA(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)", re.ASCII
)
_PORT_OF_KUBERNETES: Final = re.compile(r"(tcp|udp|sctp)://")
_SCRAM: Final = re.compile(r"scram[._]sha[._](256|512)")


def key_of(variable: str) -> str:
    """The key that a variable sets, known or not.

    Mechanisms may be written as other images want them, too: `SCRAM__SHA__256`, `SCRAM_SHA_256`.
    """
    prefix = BITNAMI_PREFIX if variable.startswith(BITNAMI_PREFIX) else PREFIX
    key = variable.removeprefix(prefix).lower().replace("_", ".").replace("...", "-").replace("..", "_")
    if prefix == BITNAMI_PREFIX:
        key = key.replace("sasl.ssl", "sasl_ssl").replace("sasl.plaintext", "sasl_plaintext")
    return _SCRAM.sub(r"scram-sha-\1", key) if key.startswith("listener.name.") else key


def variable_of(key: str, prefix: str = PREFIX) -> str:
    """The variable that sets a key."""
    return prefix + key.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def is_known(key: str) -> bool:
    """Tell whether a broker has that key."""
    return (
        key in node_keys()
        or key in OF_THE_AUTHORIZER
        or is_of_a_listener(key)
        or is_of_web_tls(key)
        or key.startswith(CONSOLE_CLIENT)
    )


def nearest_key(key: str) -> str | None:
    """The known key that is written most like this one; None where none is."""
    near = difflib.get_close_matches(key[:200], [*node_keys(), *OF_THE_AUTHORIZER], n=1, cutoff=0.75)
    return near[0] if near else None


def is_without_meaning(variable: str) -> bool:
    """Tell whether a variable is known and changes nothing here."""
    return variable in WITHOUT_MEANING or variable.startswith(_FAMILIES_WITHOUT_MEANING)


def is_of_kubernetes(variable: str, value: str) -> bool:
    """Tell whether Kubernetes set a variable for a service whose name begins with `kafka`."""
    if _OF_KUBERNETES.fullmatch(variable):
        return True
    return variable.startswith("KAFKA") and variable.endswith("_PORT") and bool(_PORT_OF_KUBERNETES.match(value))

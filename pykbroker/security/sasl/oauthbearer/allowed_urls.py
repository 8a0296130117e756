"""The addresses that a process may ask for keys and tokens: Kafka's system property of that name, since CVE-2025-27817.

Kafka takes it from `KAFKA_OPTS`, which its scripts hand to Java, and so from those who start the process rather than
those who write its properties. The same variable counts here. Without it no address is allowed.
"""

from __future__ import annotations

import shlex
from typing import Final

from pykbroker.config.keys import ConfigurationError, InvalidValue

PROPERTY: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
VARIABLE: Final = "KAFKA_OPTS"


def allowed_urls(java_options: str) -> frozenset[str]:
    """The addresses in the text of `KAFKA_OPTS`; of several lists the last counts, as in Java.

    Raises ConfigurationError where the text has a quote without an end.
    """
    found = ""
    try:
        words = shlex.split(java_options)
    except ValueError as error:
        raise ConfigurationError(f"{VARIABLE} cannot be read: {error}") from None
    for word in words:
        name, _, value = word.partition("=")
        if name == f"-D{PROPERTY}":
            found = value
    return frozenset(each.strip() for each in found.split(",") if each.strip())


def check_allowed(name: str, url: str, allowed: frozenset[str]) -> None:
    """Raises InvalidValue. name: the key of the address, as it was given."""
    if url not in allowed:
        raise InvalidValue(
            name, url, f'it must be allowed where the process is started: {VARIABLE}="-D{PROPERTY}={url}"'
        )

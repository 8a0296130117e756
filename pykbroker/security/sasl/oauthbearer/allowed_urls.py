"""The addresses that a process may ask for keys and tokens: Kafka's system property of that name, since CVE-2025-27817.

Kafka takes it from `KAFKA_OPTS`, which its scripts hand to Java, and so from those who start the process rather than
those who write its properties. The same variable counts here. Without it no address is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pykbroker.config.keys import InvalidValue

from ..system_properties import VARIABLE

PROPERTY: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def allowed_urls(properties: Mapping[str, str]) -> frozenset[str]:
    """The addresses that Java's system properties name."""
    return frozenset(each.strip() for each in properties.get(PROPERTY, "").split(",") if each.strip())


def check_allowed(name: str, url: str, allowed: frozenset[str]) -> None:
    """Raises InvalidValue. name: the key of the address, as it was given."""
    if url not in allowed:
        raise InvalidValue(
            name, url, f'it must be allowed where the process is started: {VARIABLE}="-D{PROPERTY}={url}"'
        )

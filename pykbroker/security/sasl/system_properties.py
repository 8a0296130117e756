"""Java's system properties, as those who start a process give them to Kafka's scripts in `KAFKA_OPTS`."""

from __future__ import annotations

import shlex
from typing import Final

from pykbroker.config.keys import ConfigurationError

VARIABLE: Final = "KAFKA_OPTS"


def system_properties(java_options: str) -> dict[str, str]:
    """The properties in the text of `KAFKA_OPTS`; of several for one name the last counts, as in Java.

    Raises ConfigurationError where the text has a quote without an end.
    """
    try:
        words = shlex.split(java_options)
    except ValueError as error:
        raise ConfigurationError(f"{VARIABLE} cannot be read: {error}") from None
    given = (word.removeprefix("-D").partition("=") for word in words if word.startswith("-D"))
    return {name: value for name, _, value in given}

"""The page of quotas: their keys, what they hold for, and which of several counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pykbroker.quotas.entities import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP_KEYS,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER_AND_CLIENT_KEYS,
)

from .words import MADE

MEANINGS: Final = {
    PRODUCER_BYTE_RATE: "Bytes a second that a client may produce to one broker.",
    CONSUMER_BYTE_RATE: "Bytes a second that a client may fetch from one broker.",
    REQUEST_PERCENTAGE: "The share of a broker's time for requests that a client may take, in percent; 100 is "
    "all of it. In Kafka each thread has 100.",
    CONTROLLER_MUTATION_RATE: "Partitions a second that a client may create or delete.",
    CONNECTION_CREATION_RATE: "Connections a second that an address may open to one broker.",
}


def page() -> str:
    lines = [MADE, "", *_INTRODUCTION.splitlines(), "", "## Of users and clients", ""]
    lines += _entries(USER_AND_CLIENT_KEYS)
    lines += ["## Of addresses", "", *_entries(IP_KEYS), *_WHICH.splitlines()]
    return "\n".join(lines) + "\n"


def _entries(keys: Mapping[str, str]) -> list[str]:
    lines: list[str] = []
    for name, type_ in sorted(keys.items()):
        lines += [f"### {name}", "", MEANINGS[name], "", f"- {type_}; more than 0; without it there is no limit", ""]
    return lines


_INTRODUCTION: Final = """# Keys of quotas

What `pykbroker quotas set` takes, as Kafka's `kafka-configs --entity-type users`, `clients` and `ips`. A quota changes
at run time and counts at once. [security.md](../security.md#quotas) says how a client is held to it."""
_WHICH: Final = """## Which one counts

Of several quotas for one key the one that stands higher holds, as in Kafka:

| user | client id |
|---|---|
| this user | this client id |
| this user | the default |
| this user | |
| the default | this client id |
| the default | the default |
| the default | |
| | this client id |
| | the default |

For an address its own quota holds, or that of the default."""

"""Kafka's names of APIs, those of other releases included.

Brokers of a ZooKeeper cluster tell their clients of APIs that only other nodes use; Kafka 4.4 has two that 4.3 has not.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from pykbroker.protocol.api_keys import ApiKey, api_name

OF_OTHER_RELEASES: Final = {
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
    93: "StreamsGroupTopologyDescriptionUpdate",
    94: "UnregisterController",
}
_UNKNOWN: Final = "ApiKey"
"""What comes before the number of an API whose name is not known."""


def name_of(api_key: int) -> str:
    """`Produce`, or `ApiKey123` for an API that nobody here knows."""
    if api_key in OF_OTHER_RELEASES:
        return OF_OTHER_RELEASES[api_key]
    name = api_name(api_key)
    return f"{_UNKNOWN}{name}" if name.isdecimal() else name


def key_of(name: str) -> int | None:
    """The API key of a name that `name_of` gave; None for any other text."""
    number = name.removeprefix(_UNKNOWN)
    if number != name and number.isascii() and number.isdecimal() and len(number) <= 5:
        return int(number)
    return _keys().get(name)


def known_names() -> list[str]:
    return list(_keys())


@cache
def _keys() -> dict[str, int]:
    return {api_name(each): int(each) for each in ApiKey} | {name: key for key, name in OF_OTHER_RELEASES.items()}

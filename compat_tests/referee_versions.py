"""The versions of requests that Kafka 4.3.1 serves, which is the referee, where pykbroker has those of 4.4 as well.

What is new there is asked of Kafka 4.4.0 (`compat_tests/kafka_4_4`).
"""

from typing import Final

from pykbroker.protocol.api_keys import ApiKey

NEW_IN_4_4: Final = {
    ApiKey.API_VERSIONS: (5, 4),
    ApiKey.TXN_OFFSET_COMMIT: (6, 5),
    ApiKey.DELETE_GROUPS: (3, 2),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (1, 0),
    ApiKey.STREAMS_GROUP_DESCRIBE: (1, 0),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: (0, None),
    ApiKey.UNREGISTER_CONTROLLER: (0, None),
}
"""The newest version of Kafka 4.4 that pykbroker serves, and that of 4.3.1, which may not know the API."""


def newest_of_the_referee(api_key: int, newest: int) -> int:
    """The newest version that both brokers serve."""
    older = NEW_IN_4_4.get(ApiKey(api_key), (newest, newest))[1]
    assert older is not None, f"Kafka 4.3.1 does not know {ApiKey(api_key).name}"
    return min(newest, older)


def as_of_4_3(advertised: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """What 4.3.1 has of what pykbroker advertises; the rest must be all of what is new."""
    newest = {key: advertised[key][1] for key in NEW_IN_4_4}
    assert newest == {key: new for key, (new, _) in NEW_IN_4_4.items()}
    kept = {key: each for key, each in advertised.items() if NEW_IN_4_4.get(ApiKey(key), (0, 0))[1] is not None}
    return {key: (oldest, newest_of_the_referee(key, newest)) for key, (oldest, newest) in kept.items()}

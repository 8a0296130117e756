"""The keys of share partitions, as Kafka writes, reads and hashes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.java_hash import abs_java_hash
from pykbroker.sharing.coordinator_key import coordinator_key, parse_coordinator_key, state_partition
from pykbroker.sharing.persister import SharePartitionKey

TOPIC = bytes(range(16))
TEXT = "AAECAwQFBgcICQoLDA0ODw"

share_partitions = st.builds(
    SharePartitionKey,
    # Of a group's id Java's `String.trim` must leave something: what it takes away is more than spaces.
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(lambda group: max(group) > " "),
    st.binary(min_size=16, max_size=16),
    st.integers(-(1 << 31), (1 << 31) - 1),
)


@given(share_partitions, st.integers(1, 100))
def test_state_lives_where_the_hash_of_the_key_says(key: SharePartitionKey, partitions: int) -> None:
    assert state_partition(key, partitions) == abs_java_hash(coordinator_key(key)) % partitions


@given(share_partitions)
def test_key_is_read_as_it_was_written(key: SharePartitionKey) -> None:
    assert parse_coordinator_key(coordinator_key(key)) == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"group:{TEXT}:7", SharePartitionKey("group", TOPIC, 7)),
        (f"a:b:{TEXT}:7", SharePartitionKey("a:b", TOPIC, 7)),
        (f"group:{TEXT}==:+7", SharePartitionKey("group", TOPIC, 7)),
        (f"group:{TEXT}:-1", SharePartitionKey("group", TOPIC, -1)),
        (f"group:{TEXT}:7::", SharePartitionKey("group", TOPIC, 7)),
        (f":group:{TEXT}:7", SharePartitionKey(":group", TOPIC, 7)),
        (f"\x1b!:{TEXT}:7", SharePartitionKey("\x1b!", TOPIC, 7)),
    ],
)
def test_forms_that_kafka_reads(text: str, key: SharePartitionKey) -> None:
    assert parse_coordinator_key(text) == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":::",
        "group",
        f"group:{TEXT}",
        f":{TEXT}:7",
        f" :{TEXT}:7",
        f"\x1b:{TEXT}:7",
        f"group:{TEXT[:-1]}:7",
        f"group:{TEXT}=:7",
        f"group:{TEXT[:-1]}+:7",
        f"group:{TEXT}:x",
        f"group:{TEXT}:2147483648",
        f"group:{TEXT}:" + "9" * 5000,
        f"group:{TEXT}: 7",
    ],
)
def test_texts_that_are_no_keys(text: str) -> None:
    assert parse_coordinator_key(text) is None

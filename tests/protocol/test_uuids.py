"""UUIDs in bytes and in Kafka's text."""

from __future__ import annotations

from random import Random

import pytest

from pykbroker.protocol.uuids import METADATA_TOPIC_ID, ZERO_UUID, random_uuid, uuid_from_text, uuid_to_text


def test_uuids_have_kafkas_text() -> None:
    assert uuid_to_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_to_text(bytes.fromhex("00fbefbefbef4bef8fbefbefbefbeffe")) == "APvvvvvvS--Pvvvvvvvv_g"


def test_text_becomes_the_same_uuid_again() -> None:
    rng = Random(1)
    for _ in range(200):
        uuid = random_uuid(rng)
        assert uuid_from_text(uuid_to_text(uuid)) == uuid


@pytest.mark.parametrize(
    "text", ["", "AAAA", "A" * 21, "A" * 23, "*" * 22, "ü" * 22, "A" * 24, "AAAAAAAAAAAAAAAAAAAAA="]
)
def test_text_that_is_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="UUID"):
        uuid_from_text(text)


def test_random_uuids_are_version_4_and_no_command_line_takes_them_for_an_option() -> None:
    rng = Random(2)
    seen = {random_uuid(rng) for _ in range(2000)}
    assert len(seen) == 2000
    for uuid in seen:
        assert uuid[6] >> 4 == 4
        assert uuid[8] >> 6 == 2
        assert not uuid_to_text(uuid).startswith("-")


def test_the_same_seed_gives_the_same_uuids() -> None:
    assert random_uuid(Random(3)) == random_uuid(Random(3))

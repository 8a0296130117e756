"""What librdkafka reports of a truncated log, in its own words, and what a leader's answer makes of it."""

import pytest
from confluent_kafka import KafkaError, Message

from pykbroker.protocol.messages.offsets import EpochEndOffset

from .stage import found_in
from .truncation import TruncationReported

WORDS = (
    "Partition log truncation detected at offset 115 (leader epoch 2): broker end offset is 15 (offset leader epoch 0)."
    " Reset to INVALID.: Local: Partition log truncation detected (broker 1)"
)


def reported(words: str) -> Message:
    return Message(topic="orders", partition=1, offset=-1001, error=KafkaError(KafkaError._AUTO_OFFSET_RESET, words))


def read(offset: int) -> Message:
    return Message(topic="orders", partition=1, offset=offset, value=b'"v1"')


def test_a_report_comes_with_the_records_that_were_read_before_and_behind_it() -> None:
    with pytest.raises(TruncationReported) as raised:
        found_in([read(113), reported(WORDS), read(7)])
    assert (raised.value.topic, raised.value.partition) == ("orders", 1)
    assert (raised.value.offset, raised.value.leader_epoch) == (115, 2)
    assert raised.value.found == {"orders-1": [(113, "v1"), (7, "v1")]}


def test_whatever_else_ends_a_consumer_is_no_report() -> None:
    with pytest.raises(AssertionError, match="no previously committed offset"):
        found_in([reported("no previously committed offset available: Local: No offset stored")])


@pytest.mark.parametrize("end_offset", [115, 200])
def test_an_epoch_that_reaches_the_position_refutes_the_report(end_offset: int) -> None:
    told = EpochEndOffset(leader_epoch=2, end_offset=end_offset)
    assert TruncationReported("orders", 1, 115, 2).is_refuted_by(told)


@pytest.mark.parametrize(("leader_epoch", "end_offset"), [(2, 114), (1, 115), (0, 15)])
def test_an_epoch_that_ended_before_confirms_it(leader_epoch: int, end_offset: int) -> None:
    told = EpochEndOffset(leader_epoch=leader_epoch, end_offset=end_offset)
    with pytest.raises(AssertionError, match="orders-1 is said to be truncated at 115"):
        TruncationReported("orders", 1, 115, 2).is_refuted_by(told)

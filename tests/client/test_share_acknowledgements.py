"""Acknowledgements of a share consumer on their way: every offset stands in a request once, with its type."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pykbroker.client.share_acknowledgements import Acknowledgements, AcknowledgeType
from pykbroker.client.share_membership import TopicIdPartition

TOPIC_ID = bytes(range(16))
OF = TopicIdPartition(TOPIC_ID, 0)

KINDS = st.dictionaries(st.integers(0, 200), st.sampled_from(AcknowledgeType), max_size=60)


def spread(acknowledgements: Acknowledgements, of: TopicIdPartition = OF) -> dict[int, int]:
    """The type of each offset, as the leader reads the request."""
    found: dict[int, int] = {}
    end = -1
    for batch in acknowledgements.taken().get(of, []):
        assert end < batch.first_offset <= batch.last_offset, "in order, without overlap"
        end = batch.last_offset
        [kind] = batch.acknowledge_types
        found |= dict.fromkeys(range(batch.first_offset, batch.last_offset + 1), kind)
    return found


@given(KINDS, st.randoms(use_true_random=False))
def test_every_offset_is_acknowledged_once_whatever_their_order(
    kinds: dict[int, AcknowledgeType], random: Random
) -> None:
    shuffled = list(kinds.items())
    random.shuffle(shuffled)
    acknowledgements = Acknowledgements()
    for offset, kind in shuffled:
        acknowledgements.add(OF, offset, offset, kind)
    assert bool(acknowledgements) == bool(kinds)
    assert spread(acknowledgements) == kinds
    assert not acknowledgements


def test_neighbours_of_one_type_are_one_batch_and_a_large_gap_is_one_too() -> None:
    acknowledgements = Acknowledgements()
    for offset in range(1_000):
        acknowledgements.add(OF, offset, offset, AcknowledgeType.ACCEPT)
    acknowledgements.add(OF, 1_000, 10_000_000_000, AcknowledgeType.GAP)
    [accepted, gap] = acknowledgements.taken()[OF]
    assert (accepted.first_offset, accepted.last_offset, accepted.acknowledge_types) == (0, 999, [1])
    assert (gap.first_offset, gap.last_offset, gap.acknowledge_types) == (1_000, 10_000_000_000, [0])


def test_partitions_do_not_mix() -> None:
    acknowledgements = Acknowledgements()
    other = TopicIdPartition(TOPIC_ID, 1)
    acknowledgements.add(OF, 0, 0, AcknowledgeType.ACCEPT)
    acknowledgements.add(other, 1, 1, AcknowledgeType.ACCEPT)
    assert {of: len(batches) for of, batches in acknowledgements.taken().items()} == {OF: 1, other: 1}

"""The form of acknowledgements in a request; Kafka's `KafkaApis.validateAcknowledgementBatches`."""

from __future__ import annotations

from collections.abc import Sequence

from .values import Acknowledgement, AcknowledgeType


def are_well_formed(batches: Sequence[Acknowledgement], *, knows_renewal: bool, is_renewal: bool) -> bool:
    """Tell whether batches of one partition go up, and say one thing of all of their records, or one of each.

    knows_renewal: the request's version has RENEW. is_renewal: the request says that it has some.
    """
    greatest = AcknowledgeType.RENEW if knows_renewal else AcknowledgeType.REJECT
    end = -1
    for first, last, types in batches:
        if first > last or first < end or not types:
            return False
        if len(types) > 1 and last - first != len(types) - 1:
            return False
        if min(types) < 0 or max(types) > greatest:
            return False
        if not is_renewal and AcknowledgeType.RENEW in types:
            return False
        end = last
    return True

"""The topics in a consumer's subscription.

The coordinator looks into it for one purpose: to refuse OffsetDelete for a topic that is subscribed to. Every version
of the format begins as version 0 does, so it is read as version 0, whatever version it claims.
"""

from __future__ import annotations

from pykbroker.protocol.compile import decode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"
VERSION_PREFIX_BYTES = 2


def subscribed_topics(subscription: bytes) -> frozenset[str] | None:
    """None where the bytes are not a subscription."""
    try:
        parsed, _ = decode(ConsumerProtocolSubscription, 0, subscription, VERSION_PREFIX_BYTES)
    except MalformedMessage:
        return None
    return frozenset(parsed.topics)

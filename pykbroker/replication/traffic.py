"""Traffic by topic on this node, in plain numbers that the hot path adds to (`BrokerTopicMetrics`)."""

from __future__ import annotations

from collections.abc import Mapping


class TopicTraffic:
    """The traffic of one topic since this node has had a partition of it. It only grows.

    messages_in, bytes_in: appended by this node as leader. bytes_out: sent to consumers. produce_requests: appends,
    refused ones included. failed_produce, failed_fetch: of those that Kafka counts as failed.
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetch",
        "failed_produce",
        "messages_in",
        "produce_requests",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.produce_requests = 0
        self.failed_produce = 0
        self.failed_fetch = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0

    def add(self, other: TopicTraffic) -> None:
        """Count what the other one has counted."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class TrafficByTopic:
    """The traffic of a node by topic, for as long as the node has a partition of it."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicTraffic] = {}
        self.gone = TopicTraffic()
        """The traffic of all topics that the node has no partition of any more, so that a sum never falls."""

    @property
    def topics(self) -> Mapping[str, TopicTraffic]:
        return self._topics

    def of(self, topic: str) -> TopicTraffic:
        """Return the traffic of a topic that begins to be hosted here, or is already."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicTraffic()
        return found

    def forget(self, topic: str) -> None:
        traffic = self._topics.pop(topic, None)
        if traffic is not None:
            self.gone.add(traffic)

"""The fields by which Kafka's requests and responses name topics, in whichever of them they stand."""

from __future__ import annotations

from typing import Final

TOPIC_NAMES: Final = frozenset({"topic", "topic_name"})
LISTS_OF_TOPICS: Final = frozenset(
    (
        *("topics", "topic_names", "subscribed_topic_names", "topic_data", "topic_partitions", "v3_and_below_topics"),
        *("source_topics", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics"),
        *("forgotten_topics_data", "responses", "results", "results_by_topic_v3_and_below"),
    )
)
"""Whose elements are names of topics, or have a topic's name in their field `name`."""
RESOURCES: Final = {"resource_name": "resource_type", "resource_name_filter": "resource_type_filter"}
"""A name, which is one of a topic where the type says so: of configurations and of ACLs."""
TOPIC_RESOURCE: Final = 2

"""Differences of two images, for listeners of changes: a snapshot replaces the image as a whole (KIP-630)."""

from __future__ import annotations

from .image import ImageChanges, MetadataImage


def difference(old: MetadataImage, new: MetadataImage) -> ImageChanges:
    """Return the changes as if the records between the two images had come one by one. Both images stay as they are."""
    changes = ImageChanges(others=True)
    topics = {topic.topic_id: topic for topic in new.topics.values()}
    for topic in old.topics.values():
        if topic.topic_id not in topics:
            changes.deleted_topics[topic.topic_id] = topic
    for topic_id, topic in topics.items():
        before = old.topic_by_id(topic_id)
        known = {} if before is None else before.partitions
        for index, partition in topic.partitions.items():
            if known.get(index) != partition:
                changes.partitions[topic_id, index] = None
    for resource in [*old.configs, *new.configs]:
        if old.configs.get(resource) != new.configs.get(resource):
            changes.configs[resource] = None
    for broker_id in [*old.brokers, *new.brokers]:
        if old.brokers.get(broker_id) != new.brokers.get(broker_id):
            changes.brokers[broker_id] = None
    for entity in [*old.client_quotas, *new.client_quotas]:
        if old.client_quotas.get(entity) != new.client_quotas.get(entity):
            changes.client_quotas[entity] = None
    for acl_id in [*old.acls, *new.acls]:
        if old.acls.get(acl_id) != new.acls.get(acl_id):
            changes.acls[acl_id] = old.acls.get(acl_id)
    for token_id in [*old.delegation_tokens, *new.delegation_tokens]:
        if old.delegation_tokens.get(token_id) != new.delegation_tokens.get(token_id):
            changes.delegation_tokens[token_id] = None
    return changes

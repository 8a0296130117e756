"""The topics of a pass, each with its copy in the target, which is created or grows where need be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..errors import BadOptions
from ..progress import names_of
from ..session import Say
from ..source import ClusterEnds, TopicEnds, ends_of, matching_topics, partition_counts
from .options import MirrorOptions
from .positions import copies_of_target, group_of, positions_of
from .topics import JOURNAL, create_journal, create_topics, grow_topics, own_configs


@dataclass(frozen=True, slots=True)
class TopicPairs:
    """The topics, by their names in the source. targets: their copies. groups: those that have the positions."""

    cluster: ClusterEnds = field(default_factory=lambda: ClusterEnds("", {}))
    targets: Mapping[str, TopicEnds] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)


def sources(options: MirrorOptions) -> ClusterEnds:
    """The topics that are to be copied, as they are now. Raises BadOptions, ClusterUnavailable.

    Of those that only the pattern names, copies of the target's own topics are left out: each would become a copy of a
    copy of a copy …
    """
    names = matching_topics(options.source, options.topics, options.topics_matching)
    found = ends_of(options.source, names, options.isolation_level)
    matched = set(names) - set(options.topics)
    copies = copies_of_target(options.source, options.target) if matched else set()
    topics = {
        name: topic for name, topic in found.topics.items() if name not in matched or topic.topic_id not in copies
    }
    return ClusterEnds(found.cluster_id, topics)


def missing_topics(options: MirrorOptions, cluster: ClusterEnds) -> list[str]:
    """The names of the copies that are to be created."""
    names = [options.prefix + name for name in cluster.topics]
    return sorted(set(names) - set(partition_counts(options.target, names)))


def create_copies(options: MirrorOptions, cluster: ClusterEnds, say: Say) -> list[str]:
    """Create what the target does not have, and tell what that was. Raises ClusterUnavailable."""
    wanted = {options.prefix + name: len(topic.partitions) for name, topic in cluster.topics.items()}
    there = partition_counts(options.target, [*wanted, JOURNAL])
    if JOURNAL not in there:
        create_journal(options.target, options.replication_factor)
    missing = {name: count for name, count in wanted.items() if name not in there}
    if missing:
        configs = own_configs(options.source, [name.removeprefix(options.prefix) for name in missing])
        create_topics(
            options.target,
            missing,
            {name: configs[name.removeprefix(options.prefix)] for name in missing},
            options.replication_factor,
        )
    small = {name: count for name, count in wanted.items() if there.get(name, count) < count}
    if small:
        grow_topics(options.target, small)
        say(f"{names_of(small)} got as many partitions as in the source")
    return list(missing)


def pair(options: MirrorOptions, cluster: ClusterEnds, known: Collection[str]) -> TopicPairs:
    """The topics with their copies, which exist. known: groups of pairs that were looked at before.

    Raises BadOptions, ClusterUnavailable.
    """
    found = ends_of(options.target, [options.prefix + name for name in cluster.topics], "read_uncommitted")
    targets = {name: found.topics[options.prefix + name] for name in cluster.topics}
    groups = {name: group_of(cluster.cluster_id, topic, targets[name]) for name, topic in cluster.topics.items()}
    back = {}
    for name, topic in cluster.topics.items():
        if (found.cluster_id, targets[name].topic_id) == (cluster.cluster_id, topic.topic_id):
            raise BadOptions(f"The source and the target of {name} are the same topic: give a prefix")
        if groups[name] not in known:
            back[name] = group_of(found.cluster_id, targets[name], topic)
    written = positions_of(options.source, list(back.values()))
    for name, group in back.items():
        if group in written:
            raise BadOptions(
                f"{name} is itself the copy of {targets[name].name}, which would be its copy: "
                "its records would go around in circles; give a prefix"
            )
    return TopicPairs(cluster, targets, groups)

"""Actions of `pykbroker streams-groups`: list, describe and delete. Offsets are in `streams_group_offsets`."""

from __future__ import annotations

from collections.abc import Sequence

from pykbroker.client.cluster import Cluster
from pykbroker.client.group_offsets import fetch_offsets
from pykbroker.client.streams_groups import StreamsGroup, describe_streams_group

from . import typed_groups
from .entries import Value
from .internal_topics import complaint, delete_topics, internal_topics_of, told
from .streams_group_options import StreamsGroupOptions
from .streams_group_tables import InputRow, as_json, input_rows, print_members, print_offsets, print_state
from .typed_groups import STREAMS, Descriptions, Followed, chosen, counted


async def list_names(cluster: Cluster, options: StreamsGroupOptions) -> None:
    """Print the groups as Kafka's tool does."""
    await typed_groups.list_names(cluster, options, STREAMS)


async def list_in_words(cluster: Cluster, options: StreamsGroupOptions) -> None:
    """Print the groups with their states."""
    await typed_groups.list_in_words(cluster, options, STREAMS)


async def describe_as_kafka(cluster: Cluster, options: StreamsGroupOptions) -> None:
    """Describe groups; of a group without members Kafka's tool shows no offsets."""
    await _describe(cluster, options, only_read=True)


async def describe(cluster: Cluster, options: StreamsGroupOptions) -> None:
    """Describe groups, with all offsets that they have committed. Raises CommandFailed where one does not exist."""
    await _describe(cluster, options, only_read=False)


async def _describe(cluster: Cluster, options: StreamsGroupOptions, *, only_read: bool) -> None:
    def print_rows(group: StreamsGroup, rows: Sequence[InputRow], *, verbose: bool) -> None:
        print_offsets(group, [row for row in rows if row.is_read or not only_read], verbose=verbose)

    ways = Descriptions(describe_streams_group, input_rows, as_json, print_members, print_state, print_rows)
    await typed_groups.describe(cluster, options, STREAMS, ways)


async def delete(cluster: Cluster, options: StreamsGroupOptions) -> None:
    """Delete the groups that are meant. Raises CommandFailed for those that cannot be."""
    await _delete(cluster, options, await chosen(cluster, options, STREAMS))


async def delete_existing(cluster: Cluster, options: StreamsGroupOptions) -> None:
    """Delete the groups that are meant. Nothing is deleted where one of them does not exist. Raises CommandFailed."""
    await typed_groups.delete_existing(cluster, options, STREAMS, _delete)


async def _delete(cluster: Cluster, options: StreamsGroupOptions, names: Sequence[str]) -> None:
    internal: dict[str, list[str]] = {}
    if options.all_internal_topics:
        there = {group.group_id for group in await typed_groups.listed(cluster, STREAMS)}
        for name in names:
            if name in there:
                internal[name] = internal_topics_of(await describe_streams_group(cluster, name))

    async def count_of(name: str) -> str:
        offsets = counted(len(await fetch_offsets(cluster, name)), "committed offset")
        topics = internal.get(name)
        return f"{offsets}, internal topics {', '.join(topics)}" if topics else offsets

    async def after(deleted: Sequence[str]) -> Followed:
        gone = {name: await delete_topics(cluster, internal[name]) for name in deleted if internal.get(name)}
        rows: dict[str, dict[str, Value]] = {
            name: {"internal_topics_deleted": each.deleted} for name, each in gone.items()
        }
        return Followed(rows, told(gone), complaint(gone))

    await typed_groups.delete(
        cluster,
        options,
        STREAMS,
        names,
        what_goes="with all offsets" + (" and internal topics" if options.all_internal_topics else ""),
        count_of=count_of,
        after=after,
    )

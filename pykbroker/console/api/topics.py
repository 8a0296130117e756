"""`GET /api/topics`: a page of the topics, filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.messages.metadata import MetadataResponseTopic

from .pages import Page, PageAsked, page_of
from .topic_rows import TopicRow, all_metadata, rows_of

_ORDERS: Final[dict[str, Callable[[TopicRow], Any]]] = {
    "name": lambda row: row.name,
    "partitions": lambda row: row.partitions,
    "replicas": lambda row: row.replicas,
    "under_replicated": lambda row: (row.offline, row.under_replicated),
}


async def topics(asking: Asking, given: Arguments) -> Page[TopicRow]:
    """Return a page. Raises BadInput, ClientError."""
    asked = PageAsked.of(given)
    text = given.text("filter", "", longest=249).lower()
    order = given.one_of("sort", list(_ORDERS), "name")
    descending, internal = given.flag("descending"), given.flag("internal")
    response = await all_metadata(asking.cluster)

    def page(found: Sequence[MetadataResponseTopic]) -> Page[TopicRow]:
        rows = [row for row in rows_of(found) if text in row.name.lower() and (internal or not row.is_internal)]
        rows.sort(key=lambda row: row.name)
        rows.sort(key=_ORDERS[order], reverse=descending)
        return page_of(rows, asked)

    return await asking.threads.run(page, response.topics)

"""CreateTopics (key 19): topics, by numbers of partitions and replicas or by an explicit assignment.

Served are versions 2 to 7: 4 lets -1 stand for the broker's defaults (KIP-464), 5 returns the configuration (KIP-525),
7 the topic id (KIP-516).

The rules are the controller's (`metadata.topics`). The answer comes when this node's image and its replicas have the
change, so that every later request on any connection sees it.
"""

from __future__ import annotations

from pykbroker.protocol.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from pykbroker.server.dispatch import RequestContext, handles


@handles(CreateTopicsRequest, listeners=frozenset({"broker", "controller"}))
async def create_topics(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    response: CreateTopicsResponse = await context.broker.controller.submit(request)
    return response

"""Topics that the controller has just created, perhaps on another node, and that this node is about to hear of."""

from __future__ import annotations

from typing import Final

from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.topics import CreateTopicsResponse
from pykbroker.server.node.broker import ClusterNode

_TIMEOUT_S: Final = 1.0
CREATED_OR_THERE: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


async def wait_until_known(node: ClusterNode, response: CreateTopicsResponse) -> None:
    """A client that asks here next need not ask twice. It will where this node is that far behind."""
    names = [each.name for each in response.topics if each.error_code in CREATED_OR_THERE]

    def all_known(image: MetadataImage) -> bool:
        return all(image.topic(name) is not None for name in names)

    if not all_known(node.image):
        await node.image_conditions.until(all_known, _TIMEOUT_S)

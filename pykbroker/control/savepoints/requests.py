"""Requests for savepoints, as they come over HTTP. On the node's event loop.

A savepoint is sent to whoever asks: no path of this machine is in a request. A fork of a node in a process of its own
is `pykbroker start --savepoint`, with what was received.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import trio

from pykbroker.server.node.node import Node
from pykbroker.server.runtime.threads import Threads

from .errors import SavepointRefused

if TYPE_CHECKING:
    from pykbroker.control.clocks.clocks import Advances

    from .manifest import Manifest
    from .node_copy import Rewinding

CONTENT_TYPE: Final = "application/x-tar"
_PORTION_BYTES: Final = 1 << 18


class Download:
    """A savepoint that is written, and has no name any more. manifest: what it is."""

    def __init__(self, descriptor: int, manifest: Manifest, threads: Threads) -> None:
        self.size_bytes: Final = os.fstat(descriptor).st_size
        self.summary: Final[dict[str, str | int]] = {
            "bytes": self.size_bytes,
            "cluster_id": manifest.cluster_id,
            "created_ms": manifest.created_ms,
            "files": len(manifest.files),
            "node_id": manifest.node_id,
        }
        """What it is, as JSON has it."""
        self._descriptor = descriptor
        self._threads = threads

    async def portions(self) -> AsyncIterator[bytes]:
        """All of its bytes, in order."""
        position = 0
        while position < self.size_bytes:
            data = await self._threads.run(os.pread, self._descriptor, _PORTION_BYTES, position)
            position += len(data)
            yield data


class Savepoints:
    """The savepoints of one node. node: the node while it runs."""

    def __init__(self, node: Callable[[], Node | None]) -> None:
        self._node = node
        self._is_sending = False

    @asynccontextmanager
    async def download(
        self, rewinding: Rewinding | None = None, advances: Advances = MappingProxyType({})
    ) -> AsyncIterator[Download]:
        """Write a savepoint for the body, which sends it. Raises SavepointRefused, also while another one is being
        sent: each takes the room of all that the node has. rewinding, advances: as for `save_node`.
        """
        # Each node with control has this module, and few are asked: the start does not wait for the others.
        from pykbroker.server.quorum.formatting import directory_paths

        from .node_cut import parts_of
        from .saving import save_node
        from .volumes import directory_beside

        if self._is_sending:
            raise SavepointRefused("a savepoint of this node is being sent: ask again when that is done")
        node = self._node()
        parts, _ = parts_of(node)
        threads = parts.node.threads
        resources = ExitStack()
        self._is_sending = True
        try:
            place = directory_beside(directory_paths(parts.node.config))
            path = await threads.run(resources.enter_context, place) / "savepoint"
            manifest = await save_node(node, path, rewinding, advances=advances)
            yield Download(await threads.run(_open_unnamed, path, resources), manifest, threads)
        finally:
            self._is_sending = False
            with trio.CancelScope(shield=True):
                await threads.run(resources.close)


def _open_unnamed(path: Path, resources: ExitStack) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    resources.callback(os.close, descriptor)
    path.unlink()
    return descriptor

"""The place of an application: the node that it shows, and a nursery for what it does meanwhile.

The console is such an application: `pykbroker.console` has a function

    def console_application(place: Place) -> ASGIApp

The package is imported in a worker thread, and the function is then called in the node's loop, at the first request for
a path that is not `/metrics`, `/healthz` or `/readyz`, once the node serves. The function must be quick, and may start
tasks in `place.nursery`, which ends with the server. It is called once for each node's start. All paths
begin at `/`. Before the application is reached, `Host` has been checked (`callers`). Requests that change something
must be checked by the application (`callers.is_of_another_origin`, `callers.is_of_another_site`), and bodies be read
with a bound (`body.read_body`). A connection on which nothing comes or goes for two minutes is closed
(`bounded_stream`): whoever streams says something more often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import trio

    from pykbroker.server.node.node import Node, NodeReady


@dataclass(frozen=True, slots=True)
class Place:
    """A node that serves, with the broker role. node.parts: None when it has ended."""

    node: Node
    ready: NodeReady
    nursery: trio.Nursery

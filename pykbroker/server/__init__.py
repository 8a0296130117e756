"""The server: everything of a node that waits. Trio, sockets, threads and clocks are here; the rules are elsewhere.

A simulation replaces four seams: `runtime.clock.Clock`, `runtime.threads.Threads`, `network.transport.Network` with its
`Transport`, and the storage's `Disk`. Nothing at module level is shared between nodes of one process.

The wings, from the lowest to the highest; none imports one that comes after it:

- `runtime`: clock, threads, turns on the event loop, and the watch over the loop.
- `network`: listeners, connections, the dispatch of requests, connections between nodes.
- `logs`: the logs of a node, their loading, flushes, retention and cleaning.
- `quorum`: raft, the metadata log, the image, and the active controller.
- `replicas`: the partitions of a node, their appends, reads and fetchers.
- `coordinators`: the coordinators of groups and transactions.
- `node`: a node as a whole, from its start to its shutdown.
"""

"""The one place where the parts of a node are made and wired.

`parts.compose` is the entry: it makes everything that lives as long as a node does, out of the node's configuration,
its opened storage and its environment. Nothing here waits, and nothing is started: `node.Node` runs the parts. The
modules, in reading order:

- `parts`: `compose`, and the listeners with their handlers.
- `quorum`: what every node has: raft, the image, the way to the active controller.
- `raft`: the raft driver, told who this node is and who votes.
- `broker`: what the broker role adds.
- `replicas`: the replica manager and replication.
- `transactions`: the parts for transactions.

A class elsewhere receives the parts that it works with in its constructor. It makes only what nobody else sees: its
queues, caches and events.
"""

"""The one place where the parts of a node are made and wired.

`parts.compose` is the entry: it makes everything that lives as long as a node does, out of the node's configuration,
its opened storage and its environment. `raft` and `quorum` make what every node has, `replicas`, `transactions` and
`broker` what the broker role adds. Nothing here waits, and nothing is started: `node.Node` runs the parts.

A class elsewhere receives the parts that it works with in its constructor. It makes only what nobody else sees: its
queues, caches and events.
"""

"""The replicas of a node: `ReplicaManager`, fetchers from leaders, waits of fetches, moves between directories."""

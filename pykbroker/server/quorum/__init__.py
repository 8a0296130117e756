"""The metadata quorum of a node: its raft driver, metadata log, snapshots, publisher, and the active controller."""

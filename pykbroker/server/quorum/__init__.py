"""The quorum wing keeps the cluster's metadata: the raft driver, the metadata log and its snapshots, the publisher, and
the active controller.
"""

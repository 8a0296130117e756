"""Consumer groups (KIP-848): heartbeats, target assignments, reconciliation, migration from and to classic groups."""

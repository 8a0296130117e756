"""The transaction coordinator (KIP-98, KIP-360, KIP-890) as a pure state machine; the door is `shard.TransactionShard`.

Handlers and drivers live in `pykbroker.api` and `pykbroker.server`. Markers are written by them too: this package says
which (`effects.WriteMarkers`), and is told when they are there (`requests.MarkersWritten`).
"""

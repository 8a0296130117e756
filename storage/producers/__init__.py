"""The state of the producers that write to a log: sequences, transactions, snapshots of both.

- `producer_state`: the state of all producers of a log, the place to start; `producer_entry` is one of them.
- `transaction_verification`: questions at the transaction coordinator that are under way.
- `producer_snapshots`, `producer_replay`: the state from a file, and from the batches behind it.
"""

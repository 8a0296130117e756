"""The transaction coordinator (KIP-98, KIP-360, KIP-890) as a pure state machine; the door is `shard.TransactionShard`.

Handlers and drivers live in `pykbroker.api` and `pykbroker.server`. Markers are written by them too: this package says
which (`effects.WriteMarkers`), and is told when they are there (`requests.MarkersWritten`). The modules, in reading
order:

- `shard`: the door; the transactional ids of one partition of `__transaction_state`.
- `transaction`: one transactional id with its states.
- `step`: the table of transactions, and what one step gathers.
- `requests`: what handlers ask besides the requests of the protocol.
- `init_producer_id`: InitProducerId.
- `partitions`: AddPartitionsToTxn and AddOffsetsToTxn.
- `end_transactions`: EndTxn, and aborts that nobody asks for.
- `effects`: what follows from a committed step outside of the shard.
- `timeouts`: transactions that take too long, and ids that nobody uses.
- `administration`: ListTransactions and DescribeTransactions.
- `records`: the records of `__transaction_state`.
- `config`: the settings of transactions.

`tests/transactions/transcripts` hold what Apache Kafka answers, and writes, at each level of transaction.version; the
rules alone and a whole node are checked against them.
"""

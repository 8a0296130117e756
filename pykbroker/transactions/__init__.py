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

The way of a transaction: the leader of a partition appends a transactional batch where the transaction is open already.
Where it is not, the leader asks the coordinator, which may add the partition, and appends under a guard that a marker
takes back (`pykbroker.api.transaction_verification`). EndTxn makes the shard decide: the step has a PREPARE record and
the effect `WriteMarkers`. Once the record is committed, markers go into all partitions that are led on this node, the
shard is told and adds its COMPLETE record, and EndTxn is answered. Where another node leads a partition, EndTxn is
answered after PREPARE, and the rest follows. A shard that finds PREPARE when it is loaded begins with the effect.

`tests/transactions` compare answers and records with those of Apache Kafka, at each level of transaction.version.
"""

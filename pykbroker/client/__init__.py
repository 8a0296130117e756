"""A small client for the commands and the tests, against any broker. Its errors are `errors.ClientError`.

The modules, in reading order:

- `from_properties`: a cluster as the properties of Java's clients name it.
- `cluster`: connections on demand, metadata, coordinators, and retries; where a caller begins.
- `connection`: one connection to a broker.
- `sasl`: authentication of one connection.
- `metadata`: nodes, topics and leaders.
- `errors`: the errors, each of one sentence.
- `producer`: idempotent batches.
- `producer_transaction`: the transactions of a producer.
- `batch`: a batch on its way to one partition.
- `partitioner`: the choice of a record's partition.
- `consumer`: partitions that the caller assigns.
- `fetched`: the records of a fetched partition.
- `group_consumer`: topics that the members of a group share.
- `membership`: one member of a classic group.
- `share_consumer`: records of which each goes to one member of a share group; `share_membership`, `share_session`,
  `share_acknowledgements`: its parts.
- `consumer_protocol`: the bytes of subscriptions and assignments.
- `assignor`: the range assignor.
- `background`: a task that runs beside a block of code.

Administration, as functions of a cluster:

- `topics`: create, describe, grow, delete.
- `configs`: describe and alter.
- `acls`, `quotas`, `scram_users`, `delegation_tokens`: who may do what and how fast, and who there is.
- `groups`: list, describe, delete.
- `share_groups`, `streams_groups`: what only these types have.
- `group_offsets`: fetch, commit, delete.
- `offsets`: ListOffsets.
- `brokers`, `each_node`: which there are, and one question to many of them.
- `quorum`, `features`: the controllers and their voters, levels of features.
- `log_dirs`, `reassignments`, `elections`: where replicas lie, where they go, who leads them.
- `replication_throttles`: bounds on the traffic of moves.
- `delete_records`: DeleteRecords.
- `transactions`: list, describe, and end those that hang.
"""

"""The messages of Kafka's protocol and the records of its internal topics, declared once, a module per family.

A class has the name that Kafka's JSON schema gives it, and so have its structs (`JoinGroupRequestProtocol`); where two
messages of one module have different structs of one name, the message's name stands in front
(`VoteRequestPartitionData`). Fields have the schema's names in snake case. `schema` says how a declaration is read,
`api_keys` finds the classes of an API.

- Connections: `headers`, `api_versions`, `sasl`, `delegation_tokens`, `telemetry`.
- Records and offsets: `produce`, `fetch`, `offsets` (ListOffsets, OffsetForLeaderEpoch, DeleteRecords).
- The cluster for clients: `metadata` (also DescribeTopicPartitions, DescribeCluster), `topics`, `configs`, `log_dirs`,
  `reassignments`, `acls`, `quotas`, `scram_credentials`.
- Groups: `groups` (FindCoordinator and the classic protocol), `consumer_groups`, `consumer_protocol`, `group_offsets`,
  `group_admin`, `share_groups`, `share_state`, `streams_groups`.
- Transactions: `transactions` (also InitProducerId), `transaction_admin`.
- Brokers and controllers: `brokers` (registration, heartbeats, AlterPartition, Envelope), `principals`, `quorum`,
  `voters`.
- Records of internal topics: `metadata_records`, `control_records`, `group_records`, `consumer_group_records`,
  `share_group_records`, `streams_group_records`, `share_state_records`, `transaction_records`.
- Files: `quorum_state`, and in `storage_records` the snapshots of producers.
"""

"""The cluster's metadata: the image of the committed records, and the controller's rules, which write them.

All of it is pure: no Trio, no clock, no file. `server.quorum` drives it. The modules, in reading order.

The image, on every node:

- `image`: the cluster as the records give it; Kafka's `MetadataImage`.
- `partition_state`: one partition, as a value.
- `registrations`: the nodes of the cluster.
- `records`: the bytes of a record.
- `client_quota_records`: quotas of clients as records.
- `scram_records`: SCRAM credentials and their records.
- `scram_arguments`: the users of a new cluster, as `format --add-scram` names them.
- `delegation_token_records`: delegation tokens and their records.
- `image_difference`: the differences of two images.
- `features`: feature levels (KIP-584).
- `effective_configs`: effective configurations with their sources.
- `topic_names`: the names that topics may have.
- `encoded_topics`: topics as Metadata describes them, encoded once for all who ask.
- `offline_replicas`: replicas that are out of reach.

The controller:

- `controller`: the rules as one state machine; the door.
- `controller_state`: what the rules share.
- `request_pieces`: large requests, piece by piece.
- `error_responses`: the response to a request of which nothing is done.
- `topics`: CreateTopics, DeleteTopics, CreatePartitions.
- `placement`: the replicas of new partitions.
- `partition_change`: one partition from one state to the next.
- `elections`: what the cluster's state allows such a change.
- `partition_index`: partitions by broker.
- `broker_changes`: the partitions of a broker that comes, leaves or loses a disk.
- `brokers`: the registration of nodes.
- `sessions`: when each broker was last heard of.
- `heartbeats`: BrokerHeartbeat, and brokers that are silent.
- `alter_partition`: AlterPartition, a leader's proposal of who is in sync.
- `reassignments`: AlterPartitionReassignments.
- `ongoing_reassignments`: ListPartitionReassignments.
- `directory_assignments`: AssignReplicasToDirs.
- `elect_leaders`: ElectLeaders, and elections that nobody asks for.
- `election_rounds`: when the controller elects of itself.
- `configs`: IncrementalAlterConfigs.
- `legacy_configs`: AlterConfigs.
- `min_isr`: min.insync.replicas where eligible leader replicas are kept.
- `feature_updates`: UpdateFeatures.
- `client_quotas`: AlterClientQuotas.
- `request_context`: what the rules are told of a request besides itself.
- `producer_ids`: AllocateProducerIds.
- `scram_credentials`: AlterUserScramCredentials and DescribeUserScramCredentials.
- `delegation_tokens`: CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, and the sweep.
- `known_tokens`: delegation tokens by their HMACs.
"""

"""One module per API. Importing this package imports them all, which registers their handlers (`server.node.handlers`).

A module that is added to this folder is served and advertised from then on. The families, in reading order:

- records: `produce`, `transactional_produce`, `fetch`, `list_offsets`, `offset_for_leader_epoch`, `delete_records`.
- the cluster: `api_versions`, `metadata`, `describe_cluster`, `describe_topic_partitions`.
- topics: `create_topics`, `create_partitions`, `delete_topics`, `elect_leaders`, `alter_partition_reassignments`,
  `list_partition_reassignments`.
- configurations: `describe_configs`, `alter_configs`, `incremental_alter_configs`, `list_config_resources`,
  `update_features`.
- classic groups: `find_coordinator`, `join_group`, `sync_group`, `heartbeat`, `leave_group`.
- consumer groups: `consumer_group_heartbeat`, `consumer_group_describe`.
- streams groups: `streams_group_heartbeat`, `streams_group_describe`, `streams_group_topology_description_update`.
- offsets of groups: `offset_commit`, `offset_fetch`, `offset_delete`, `txn_offset_commit`.
- administration of groups: `list_groups`, `describe_groups`, `delete_groups`.
- share groups: `share_group_heartbeat`, `share_group_describe`, `describe_share_group_offsets`,
  `alter_share_group_offsets`, `delete_share_group_offsets`.
- records of share groups: `share_fetch`, `share_acknowledge`.
- transactions: `init_producer_id`, `add_partitions_to_txn`, `add_offsets_to_txn`, `end_txn`, `write_txn_markers`,
  `list_transactions`, `describe_transactions`, `describe_producers`.
- the state of share groups: `initialize_share_group_state`, `read_share_group_state`, `write_share_group_state`,
  `delete_share_group_state`, `read_share_group_state_summary`.
- log directories: `describe_log_dirs`, `alter_replica_log_dirs`, `assign_replicas_to_dirs`.
- access control lists: `describe_acls`, `create_acls`, `delete_acls`.
- brokers and controllers: `broker_registration`, `broker_heartbeat`, `controller_registration`, `unregister_broker`,
  `alter_partition`, `allocate_producer_ids`, `envelope`.
- delegation tokens: `create_delegation_token`, `renew_delegation_token`, `expire_delegation_token`,
  `describe_delegation_token`.
- client telemetry: `get_telemetry_subscriptions`, `push_telemetry`.
- users: `sasl_handshake`, `sasl_authenticate`, `alter_user_scram_credentials`, `describe_user_scram_credentials`.
- the metadata quorum: `raft`, `describe_quorum`.
- shared by several APIs: `controller_requests`, `config_preprocessing`, `created_topics`, `group_requests`,
  `described_groups`, `coordinator_topics`, `transaction_requests`, `transaction_verification`, `current_leader`,
  `broker_endpoint`, `authorization`, `topic_rights`, `config_resources`, `acl_requests`,
  `delegation_token_requests`, `share_group_requests`, `share_requests`, `share_state_requests`, `pieces`.
"""

from importlib import import_module
from pkgutil import iter_modules

from pykbroker.server.node.handlers import HANDLERS

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["HANDLERS"]

"""The `pykbroker` command. Each sub-command is a module, imported only when it is called.

The modules, in reading order:

- `main`: the command with its sub-commands.
- `start`, `loading_bar`: run one node; `port_file`: says where it serves.
- `stop_requests`, `parent_watch`: why a process stops, from its first moment on.
- `cluster`, `cluster_setup`, `cluster_processes`: run several nodes on this host.
- `format`: format log directories.
- `interrupt`: work that Ctrl-C or a signal ends in good order.

Commands that are clients of a cluster:

- `command`, `connect`: what they share, such as options and one-line errors.
- `output`: tables for people and for `awk`; `progress`: bars.
- `topics`, `topic_options`, `topic_actions`: as `kafka-topics`.
- `configs`: as `kafka-configs`.
- `groups`, `group_options`, `group_actions`, `group_tables`, `offset_reset`: as `kafka-consumer-groups`.
- `share_groups`, `share_group_options`, `share_group_actions`, `share_group_tables`: as `kafka-share-groups`.
- `streams_groups`, `streams_group_options`, `streams_group_actions`, `streams_group_offsets`, `streams_group_tables`,
  `internal_topics`: as `kafka-streams-groups`. `typed_groups`, `reset_plan`: what these have in common with `groups`.
- `transactions`, `transaction_actions`: as `kafka-transactions`.
- `delete_records`: as `kafka-delete-records`.
- `brokers`, `broker_actions`, `broker_rows`; `apis`, `api_actions`: as `kafka-broker-api-versions`.
- `quorum`, `quorum_actions`, `voter_actions`: as `kafka-metadata-quorum`.
- `features`, `feature_actions`, `releases`: as `kafka-features`.
- `offsets`, `offset_actions`, `offset_times`, `partition_patterns`: as `kafka-get-offsets`.
- `log_dirs`, `log_dir_actions`: as `kafka-log-dirs`.
- `elect_leaders`, `election_actions`, `partition_file`: as `kafka-leader-election`.
- `reassign`, `reassign_options`: as `kafka-reassign-partitions`; `reassign_words`, `reassign_planning` and
  `reassign_as_kafka`: the two forms of the same. `reassignment_plan`, `reassignment_proposal`: what is to be;
  `reassignment_start`, `reassignment_state`, `reassignment_cancellation`: what is done;
  `replica_places`: where they lie.
- `two_forms`: groups of words, and of Kafka's flags; `controller_options`: controllers in place of brokers.
- `produce`, `produce_flags`, `produce_run`, `line_reader`: as `kafka-console-producer`, and more.
- `consume`, `consume_flags`, `consume_run`, `record_format`: as `kafka-console-consumer`, and more.
- `records`: records as text, as JSON, in Avro and Protobuf, for these two.
- `examples`: what stands at the end of a command's `--help`.

Commands that read files:

- `dump`, `dump_entries`, `dump_records`, `dump_printing`: the files of a log directory, with what is wrong in them.
- `verify`, `verify_cluster`, `verify_repair`: whether log directories are sound, and their repair.
- `inspect`, `listing`, `batch_listing`, `frame_listing`: bytes, by the second description of the formats.
"""

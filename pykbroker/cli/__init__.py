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
- `output`: tables for people and for `awk`.
- `topics`, `topic_options`, `topic_actions`: as `kafka-topics`.
- `configs`: as `kafka-configs`.
- `groups`, `group_options`, `group_actions`, `group_tables`, `offset_reset`: as `kafka-consumer-groups`.
- `transactions`, `transaction_actions`: as `kafka-transactions`.
- `delete_records`: as `kafka-delete-records`.
- `produce`, `produce_flags`, `produce_run`, `line_reader`: as `kafka-console-producer`, and more.
- `consume`, `consume_flags`, `consume_run`, `record_format`: as `kafka-console-consumer`, and more.
- `records`: records as text, as JSON, in Avro and Protobuf, for these two.
- `examples`: what stands at the end of a command's `--help`.

Commands that read files:

- `dump`, `dump_entries`, `dump_records`, `dump_printing`: the files of a log directory, with what is wrong in them.
- `verify`, `verify_cluster`, `verify_repair`: whether log directories are sound, and their repair.
- `inspect`, `listing`, `batch_listing`, `frame_listing`: bytes, by the second description of the formats.
"""

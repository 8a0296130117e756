"""The logs of a node stand in its log directories: here are loading, flushes, truncations, retention and the log
cleaner. The modules, in reading order:

- `hosted_logs`: all logs of the node, and where each is.
- `preferred_directories`: where clients want logs that are not there yet.
- `log_loading`: logs are opened, several at a time.
- `log_upkeep`: flushes, checkpoints, retention and removal by time.
- `log_flushes`: group commit.
- `log_truncations`: truncations of logs that are in use.
- `record_checks`: checks of batches, and lookups, that take longer than a turn.
- `log_cleaner`: compaction, the dirtiest log first.
- `cleaning_process`: where the cleaner's reading and copying is done.
- `cleaning_worker`: the process that does it.
- `cleaning_messages`: what the two processes exchange.
- `full_directories`: a line when a directory is full, and one when it is not any more.
- `logs_without_room`: logs that could not be opened for want of room.
"""

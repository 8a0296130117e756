"""The coordinators of groups and transactions stand here: their driver, their shards, transaction markers, producer
ids. The modules, in reading order.

What both coordinators share:

- `coordinator_driver`: runs a shard for each partition of an internal topic that is led here.
- `coordinated_shard`: the shape of a shard of rules.
- `led_shard`: one shard in its partition, and who waits for what.
- `coordinator_loading`: the logs of shards are read.
- `coordinator_log`: records to batches, and batches to records.
- `shared_appends`: steps of one turn share a batch.
- `cause_history`: what became of each group and transactional id lately, and why.
- `append_doubt`: whether the next append may be refused.

Groups:

- `group_coordinator`: the groups of this node.
- `group_topics`: the metadata's topics, as the rules see them.
- `topic_regex_resolver`: the topics of regular expressions, looked for in a thread.
- `assignment_threads`: large target assignments, computed in threads.
- `waiting_members`: a bound on what waiting JoinGroups hold together.

Transactions:

- `transaction_coordinator`: the transactional ids of this node.
- `producer_ids`: ids for producers, out of the controller's blocks.
- `transaction_membership`: whether partitions belong to a transaction (KIP-890).
- `transaction_markers`: the markers of decided transactions, everywhere.
- `marker`: one marker.
- `marker_appends`: markers in partitions that are led here.
- `marker_queues`: markers for what other brokers lead.
"""

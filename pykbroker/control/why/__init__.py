"""Questions why: of a rebalance, an empty consumer, a last stable offset that stands, a throttled client.

Each question has an answer of plain values: one sentence first, then the facts that it rests on. Facts alone: where a
broker cannot know, the answer says so. The modules, in reading order:

- `requests`: the questions, from plain arguments to JSON values; the door.
- `answers`: the answers as values.
- `sources`: the brokers that are asked, and which of them knows about what.
- `group`: members, rebalances and lag of a group.
- `members`: the members of groups of all types, in one form.
- `shared_partitions`: the partitions of a share group, and the records that are in flight.
- `consumer`: what a consumer does or does not get.
- `partition_look`: the same of one partition.
- `share_look`: the same of one partition of a share group.
- `rights`: who is not allowed to do what, and which ACL decides.
- `lso`: the open transactions of a partition, and whose they are.
- `throttle`: the quotas of a client.
- `precedence`: which quota applies.
- `by_protocol`: as much of it as Kafka's own protocol tells, of any broker.
- `steps`, `wording`, `text`: steps as values; times and names in sentences; an answer as lines.
"""

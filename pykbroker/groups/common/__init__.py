"""Parts that all groups share: their interface, records, deadlines, settings, steps, and the view of topics.

The modules, in reading order:

- `group`: the interface that groups of both types have.
- `context`: a request's context, and what one step of the coordinator gathers.
- `requests`: what handlers ask besides the requests of the protocol.
- `config`: the settings of groups.
- `records`: the records of `__consumer_offsets`.
- `offset_record_bytes`: the record of a committed offset, encoded and decoded by hand.
- `deadlines`: the timers of a shard.
- `topics`: the view of the metadata's topics, and the hash of what a group is subscribed to.
- `subscription`: the topics in the bytes of a consumer's subscription.
"""

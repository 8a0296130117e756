"""A node as a whole: its composition, its lifecycle, its registration with the controller.

The modules, in reading order:

- `node`: one node from its start to its shutdown; the door.
- `environment`: the disk, network, clock and threads that it runs on.
- `composition`: where its parts are made and wired.
- `broker`: the parts as handlers see them.
- `handlers`: the two tables of handlers.
- `denials`: who was not allowed to do what.
- `node_storage`: the log directories and the metadata log.
- `bound_listeners`: the ports that were really bound.
- `registered`: what brokers and controllers say of themselves.
- `controller_registration`: a controller makes itself known.
- `broker_lifecycle`: a broker registers, and its heartbeats keep it unfenced.
- `broker_role`: the tasks of the broker role.
- `node_transactions`: the parts for transactions.
- `auto_topic_creation`: topics that clients ask Metadata for are created.
- `unserved_settings`: settings of the cluster that protect in Kafka and not here.
"""

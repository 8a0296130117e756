"""Access control lists: what Kafka's `StandardAuthorizer` knows, and how it decides (KIP-11, KIP-290, KIP-801).

The modules, from the ground up:

- `resources`: types of resources and of the patterns that name them.
- `operations`: operations and permissions, and which of them imply others.
- `entry`: one entry of a list, and filters that find entries.
- `address_ranges`: ranges of addresses in the place of a host (KIP-1276).
- `pattern_entries`: the entries of one resource pattern, found by principal and host.
- `acl_index`: all entries, found by the name of a resource.
- `authorizer`: the decision.
"""

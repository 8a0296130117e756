"""Savepoints and forks: the state of a running node at one moment, as log directories of its own or as one file.

A savepoint holds the topics with their records, the committed offsets, producers and open transactions, and the
cluster's metadata: users, rights, quotas, dynamic configurations. What begins from it is the same cluster, as if the
node had been stopped at that moment and started elsewhere: with the same ids of cluster and node, and of directories,
by which the metadata says where a partition is. Clients are not connected there. The properties file is no part of it.

- `node_cut`: the moment: where each log of the node ends.
- `node_copy`: log directories as they were then, while the node goes on; segments are shared with it.
- `saving`: a node that is saved, or begins from a savepoint.
- `archive`, `manifest`: the file, a tar that is checked before and while it is unpacked.
- `volumes`: where a copy of log directories can share their files.
- `requests`: what may be asked of it over HTTP.
- `errors`: what goes wrong.
"""

"""Share groups' records: who has which record of a partition, and where that is kept (KIP-932).

- `no_op_persister`: one that keeps nothing.
- `persister`: what a partition leader and the group coordinator ask of the share coordinator.
- `coordinator`: the share coordinator's rules.
- `partition`: a share partition at its leader: which records a group has, and who has them.
- `sessions`: which partitions a member fetches from a leader.
"""

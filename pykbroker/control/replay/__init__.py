"""The way back to any point of the journal: a node as it was when an entry had ended.

The journal keeps where logs ended then (`journal/points`, `journal/log_watch`).

- `points`: the entry that is meant, and what its point has.
- `rewinding`: log directories of a later moment, cut back to the point; what is not there any more is an error.
- `journal_file`: the same from a journal's file and a savepoint, without the node.
- `errors`: what goes wrong.
"""

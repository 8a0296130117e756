"""Judges a log by the history of its clients: what they asked, what they were told, and when.

`python -m tests.history FILE` prints the verdict on a history. The model is Jepsen's Kafka workload, with what it does
not look for: transactions that are torn, zombies, committed offsets, groups, compaction, copies that are exact.

`operations` is the format, `recorder` writes it, `index` finds things in it, `check` is the judge; each other module
holds one family of anomalies. What only several brokers can show (diverging replicas, metadata) has no module yet.
"""

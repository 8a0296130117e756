"""Clusters of real processes under faults: nodes are killed and frozen, networks cut, while clients work.

`python -m compat_tests.chaos --minutes 1` runs one; what the clients saw is judged by `tests.history`. Each node has a
network namespace of its own, the clients another.
"""

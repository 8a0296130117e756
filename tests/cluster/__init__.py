"""Three whole nodes in a simulated world that fails, and clients whose histories are judged: one seed is one run.

Quorum, replication, groups and transactions are the real ones, on Trio's virtual clock; network, disks and threads are
simulated. `plan` says what kind of a run it is and how large, `faults` what goes wrong, `administration` what is asked
of the controller meanwhile. The clients are those of `tests.coordination`. `python -m tests.cluster SEED` plays a run
again and prints the verdict.
"""

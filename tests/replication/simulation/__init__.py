"""Replicas of one partition, their controller and its clients, pure, on a heap of events: one seed is one run.

Real are the rules, `replication.partition`, `isr`, `follower`, `fetch_session` and `metadata.controller`, and the logs
on simulated disks. Played are what carries them: messages that get lost, late, twice or in another order, processes
that are killed or paused, machines that lose power, a metadata log whose records are committed late, or forgotten with
the controller that wrote them. After every event the invariants are checked; see `invariants`.

`python -m tests.replication.simulation SEED` plays a seed again and tells what happens; `bugs` are mistakes that have
to be found.
"""

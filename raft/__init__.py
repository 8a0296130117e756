"""KRaft consensus in Kafka's dialect, as a pure state machine: step, ready, advance, next_deadline_ms.

- `node`: one member of the quorum, the place to start; `events`: what goes in and comes out.
- `quorum_state`: the roles and their transitions, which the parts of a member share; `states`, `leader_state`: what
  each role remembers; `election_state`: what must never be forgotten.
- What is done in the roles: `elections`, `following`, `leading`, `snapshot_fetch`, `voter_changes`. `answers`: checks
  that all of them make; `outbox`: what they want to have done.
- The log: `raft_log` (as it is on the disk), `epochs`, `voter_history`, `control_records`; `snapshots` says when one is
  due.
- Peers: `peers` (requests under way), `reconnect_backoff`, `credible_epochs`, `complaints`; `wire` builds messages and
  takes them apart.
- Configuration and identity: `replica`, `voters`, `timeouts`, `fetch_sizes`.
"""

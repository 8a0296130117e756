"""The replication of partitions: leaders, followers, in-sync replicas, fetch sessions. Pure: no Trio, no clock.

- `partition`: one partition on this node, the place to start; `reads`: what readers ask and get.
- `appended`: what became of an append; produce, markers and coordinators wait by it.
- The leader's side: `isr` (who is in sync), `replica_selector` (KIP-392), `quotas` (KIP-73), `fetch_session` (KIP-227),
  `session_watch` (a follower's session reads only what has changed).
- The follower's side: `follower` (what is fetched from one leader), `followed_partition`, `due_truncation`,
  `fetch_session_handler`, `fetch_settings`.
"""

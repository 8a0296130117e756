"""Quotas of clients and of connections, as plain rules: who is limited, how rates are measured, how long to throttle.

The package has no clock and no connections: each call takes `now_ms`, and gives the time for which its caller has to
throttle. Kafka's counterparts are `ClientQuotaManager` and its kin, `Rate`, `SampledStat` and `TokenBucket`.

- `entities`: what a quota holds for, and which keys it may have (KIP-546).
- `rate`, `token_bucket`: how much a client has had.
- `limits`: which of eight quotas holds for a client.
- `tracked_clients`: the measured clients, in bounded memory.
- `client_rates`, `controller_mutations`: the quotas of clients, and `client_quotas` all of them.
- `connection_rates`: how many connections are let in a second, of a broker, a listener and an address (KIP-612).
- `describe`: which quotas a filter finds.

Names are compared as they are. Kafka's own URL encoding of users' names (`Sanitizer`) is for the names of metrics.
"""

"""Client telemetry (KIP-714): clients push what they measure of themselves, as far as a subscription asks for it.

The package has no clock, no connections and no threads: each call takes `now_ms`. Kafka's counterparts are
`ClientMetricsManager` and its kin; a plugin that takes the metrics is `/metrics` here (`pykbroker.metrics`).

- `subscriptions`: which metrics the cluster asks of which clients, as the metadata say.
- `client_instances`: the clients that ask for subscriptions and push, in bounded memory; when they may do so.
- `client_telemetry`: the rules of the two APIs, whose answers they give.
- `otlp`: what a push says, in OpenTelemetry's form, read within bounds; `wire_fields` cuts it in pieces for that.
- `series`: one series of values; `series_names`: its name and labels as Prometheus wants them.
- `pushed_metrics`: the series of all clients, in bounded memory, until some time after a client has left.
"""

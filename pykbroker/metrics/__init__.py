"""`/metrics`: what a node knows of itself, for Prometheus, under names that map one to one to Kafka's MBeans.

- `catalog`: every metric with its type, its labels, its MBean and its meaning; `docs/metrics.md` has the same table.
- `readings`: values by metric, as they are read in the node's loop.
- `of_broker`, `of_requests`, `of_partitions`, `of_groups`, `of_cluster`, `of_telemetry`, `of_process`: read one part of
  a node each; `client_families`: what clients have pushed of themselves.
- `scrape`: reads all of it in turns, and writes it in a worker thread with prometheus_client, which alone knows the
  formats; `page` is the ASGI application.

Nothing here is asked while records come and go: parts of the node count in plain numbers of their own
(`server.runtime.histogram`, `replication.traffic`, `server.network.request_metrics`), which a scrape reads.
"""

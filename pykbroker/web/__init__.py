"""HTTP of a node, for browsers and scrapers beside Kafka's clients: sockets, bounds, and who may ask.

- `address`: what a key such as `console.listener` says; `sockets`: bound ones.
- `server`: connections and their bounds, without knowledge of HTTP; `http`: Hypercorn on one connection;
  `bounded_stream`: a connection whose client may not read, or say nothing.
- `callers`: requests of other sites' pages and of names that were made to lead here; `body`: what a request brings.
- `site`: which path belongs to whom; `place`: what an application finds of its node.

Not here: what is shown (`pykbroker.metrics`, `pykbroker.console`) and what is done (`pykbroker.control`). Nothing of
Hypercorn, Starlette or prometheus_client is imported before the first connection.
"""

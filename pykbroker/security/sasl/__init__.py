"""SASL as Kafka has it (KIP-12, KIP-43, KIP-84, KIP-152, KIP-368): who is at the other end of a connection.

- `jaas` reads the lines of `sasl.jaas.config`.
- `mechanism` says what a mechanism is, on the server's and on the client's side: `plain`, `scram_server` and
  `scram_client`, with `scram_credential` and `scram_messages` below them, and the package `oauthbearer`.
- `jaas_file` has the sections of a JAAS file, `process_options` what those say who start a process.
- `credentials` are a client's, or a node's own; `node_settings` reads what a node is told by its configuration.
- `server_handshake` is the order of requests before a connection is authenticated, and again when it must be anew.

Nothing here reads a clock, a file or a socket, and no error, no `repr` and no log line tells a password or a key.
"""

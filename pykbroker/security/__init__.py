"""Rules of security that know no sockets and no Trio: who a client is, and with which keys.

- `tls`: settings, stores, contexts and names of TLS.
- `sasl`: the mechanisms, and the order of requests before a client is known.
"""

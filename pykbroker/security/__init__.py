"""Security rules that know no sockets and no Trio: who a client is, with which keys, and what it may do.

- `tls`: settings, stores, contexts and names of TLS.
- `sasl`: the mechanisms by which a client says who it is.
- `java_options`: what `KAFKA_OPTS` says of SASL.
- `tokens`: delegation tokens, and the SCRAM credentials that follow from them.
- `acls`: access control lists and the authorizer that decides by them.
"""

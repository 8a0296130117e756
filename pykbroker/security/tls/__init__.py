"""TLS as Kafka has it, without any socket: from the `ssl.*` keys to contexts of OpenSSL and to names of principals.

- `settings`: the `ssl.*` values of one listener or client, and which combinations are refused; `cipher_suites`.
- Stores: `stores` opens what the settings name, in `pem`, `pkcs12` or `jks`; `der` reads the encoding inside.
- `contexts`: what OpenSSL needs to serve or to connect; `identity`: who a key store says that the broker is.
- `reload`: whether a key store may replace another at run time (Kafka's `SslFactory`).
- `principals`: from a certificate to the name of a principal; `distinguished_names`, `mapping_rules`.

Whoever imports `contexts` imports `ssl`, and `cryptography` is imported when the first store is opened.
"""

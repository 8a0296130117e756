"""TLS as Kafka has it, without any socket: from the `ssl.*` keys to contexts of OpenSSL and to names of principals.

- `settings`: the `ssl.*` values of one listener or client, from `given_values` and by the rules of `combinations`;
  `cipher_suites`: their names; `refusals`: what is said of values that cannot be used, here and in Kafka.
- `stores` opens what the settings name: `store_contents`, read from `pem`, `pkcs12` or `jks`. Below: `der`,
  `password_based`, `rc2`.
- `contexts`: OpenSSL's, for servers and clients, with `own_keys`, `dh_group` and `file_in_memory`.
- `reload`: whether stores may replace others at run time (Kafka's `SslFactory`), by the `identity` of the broker.
- `principals`: from a certificate to the name of a principal, by `distinguished_names` and `mapping_rules`.

Whoever imports `contexts` imports `ssl`, and `cryptography` is imported when the first store is opened.
"""

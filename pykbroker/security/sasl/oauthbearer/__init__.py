"""SASL/OAUTHBEARER (RFC 7628, KIP-255, KIP-768): clients show a JSON Web Token in place of a password.

- `client_first` is the client's one message; `server` and `client` are the two sides of the exchange.
- `compact_token` reads a token within bounds. `unsecured` and `secured` are the two ways to look at one: without a
  signature, as Kafka does unless it is told otherwise, and with keys, issuer and audience.
- `key_set` are the keys of a JWKS document, by `joserfc`; `remote_keys` keeps those that were fetched last, and says
  when others are to be fetched.
- `validator_settings` and `login_settings` read what a node, or a command, is told, from `given_keys`; `allowed_urls`
  says which addresses it may ask. `unsecured_login` makes tokens, `login_token` reads one that was fetched.

Nothing here opens a file or a socket: `pykbroker.client.oauth_tokens` and `pykbroker.server.network.jwks_refresh` do.
"""

"""Kafka's wire: bytes to typed messages and back. Pure; knows neither sockets nor files.

In reading order:

- `schema`: how a message is declared, and `messages`: the declarations, a module per family.
- `api_keys`: the API keys, and which request and response belong to each.
- `compile`: encode and decode. `decoder`, `encoder`, `source` generate the codecs, `primitives` is what these call,
  `diagnose` names the value that cannot be encoded, `error_messages` cuts texts that are too long.
- `encoded_structs`, `encoded_array`: elements of arrays that are encoded before the message that holds them.
- `framing`: sizes and headers around messages.
- `errors`: error codes, `ApiError`, and the errors of the codecs.
- `records`: record batches.
- `topic_partition`, `config_source`, `uuids`: values that all layers share.
- `descriptions`: the same bytes a second time, in `construct`: the oracle of the tests and of `pykbroker inspect`.
"""

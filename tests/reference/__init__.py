"""The pages of documentation that are made of the code: `make reference` writes them, a test tells when they are stale.

- `pages`: which pages and parts of pages these are, and their texts.
- `config_pages`: the configuration reference; `entries`: one key in it; `sections`: in which order; `words`: values and
  times in English; `remarks`: what differs from Apache Kafka and no table of the code says; `kafka_keys`: what Kafka
  documents.
- `quotas`: the keys of quotas. `variables`: the environment variables of the container. `client_properties`: what
  commands take in a properties file.
- `api_tables`: APIs and their versions, for `docs/protocol.md`.

What is said of a key to users of DescribeConfigs stands in `pykbroker.config.texts`, not here.
"""

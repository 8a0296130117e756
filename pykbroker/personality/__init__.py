"""A personality is what a cluster offers to its clients: APIs and their versions, features, limits, configurations, and
the error codes with which it answers a few harmless requests. `pykbroker probe` writes one down, `pykbroker start --as`
offers just that.

- `personality`: the noun. `toml_text` writes it, `toml_file` reads it, `shipped` has those of Kafka's releases.
- `api_names`: names of APIs, also of those that pykbroker does not know.
- `probing` asks a cluster; `questions` are the harmless requests, `kept_settings` says which configurations are kept.
- `applying`: what pykbroker takes of a personality, and what it leaves out.
"""

"""The bytes of Kafka's protocol and files a second time, as `construct` describes them.

Nothing here shares code with the generated codecs, so that one can check the other: tests parse with both and compare.
`pykbroker inspect` shows what these descriptions find. They are tens of times slower than the codecs and trust their
input; nothing that serves requests uses them.

- `values`: numbers, text, arrays, tags; `messages`: one version of one message, made from its declaration.
- `frames`: requests and responses with size and header.
- `record_batches`, `legacy_messages`: batches of format 2, messages of the formats 0 and 1.
- `internal_topics`: records of the internal topics; `index_files`: the indexes beside a segment.
"""

"""The bytes of Kafka's protocol and files a second time, as `construct` describes them.

Nothing here shares code with the generated codecs, so that one can check the other: tests parse with both and compare.
`pykbroker inspect` shows what these descriptions find. They are tens of times slower than the codecs and trust their
input; nothing that serves requests uses them.
"""

"""The doctor looks at a cluster from outside, as a client does, and says what is wrong and what would work.

It reads and changes nothing. Facts are gathered by one module each, and `rules` makes findings of them:

- `findings`: what is said; `report`: how it is said.
- `access`: the client's settings.
- `knocks`, `knocking`, `streams`: one try to reach a broker, and the closer look where it fails.
- `addresses`: what is behind the addresses that brokers hand out.
- `reach`: a cluster reached where its brokers were found.
- `quorum`, `topics`, `groups`, `brokers`: the rest, each asked for once or twice.
- `facts`: all that was found out.
- `diagnosis`: all of it, within a time.
"""

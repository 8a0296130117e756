"""What a key does otherwise than in Apache Kafka, where neither its type, its default nor a table of the code says it.

`docs/not-yet.md` says the same at more length. A remark belongs to a key that is there; a test looks.
"""

from __future__ import annotations

from typing import Final

from pykbroker.config.texts import Kind

_OF_BROKERS: Final = {
    "advertised.listeners": "`auto` in place of a host is an extension "
    "([finding-the-broker.md](../finding-the-broker.md)).",
    "authorizer.class.name": "Other authorizers than `org.apache.kafka.metadata.authorizer.StandardAuthorizer` end "
    "the start.",
    "connections.max.reauth.ms": "The key changes at run time where it is given for a listener.",
    "controller.quorum.append.linger.ms": "Where the key is not given nothing lingers (0).",
    "group.consumer.assignors": "Assignors of one's own are an error.",
    "group.share.assignors": "Assignors of one's own are an error.",
    "listeners": "`--port` of the command line wins over the port.",
    "log.cleaner.threads": "More than 4 count as 4.",
    "log.dirs": "`pykbroker start` takes `./pykbroker-data` where neither this key nor `log.dir` is given.",
    "max.connections.per.ip.overrides": "A host without an address is told in a warning; Kafka does not start.",
    "metadata.max.idle.interval.ms": "No such record is written where no other node follows the log.",
    "queued.max.request.bytes": "Where the key is not given the bound is 64 MiB; Kafka has none.",
    "replica.selector.class": "Kafka's own two classes are known, by their names.",
    "sasl.enabled.mechanisms": "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER are served; GSSAPI ends the start "
    "of a node whose listener has SASL.",
    "sasl.jaas.config": "The key is read for one mechanism of one listener "
    "(`listener.name.NAME.MECHANISM.sasl.jaas.config`), and changes at run time there.",
    "sasl.oauthbearer.jwt.retriever.class": "Classes of one's own, and Kafka's for assertions, end the start.",
    "sasl.oauthbearer.jwt.validator.class": "Classes of one's own end the start.",
    "socket.receive.buffer.bytes": "Where the key is not given the operating system decides.",
    "socket.send.buffer.bytes": "Where the key is not given it is 655360.",
    "ssl.cipher.suites": "Suites of TLS 1.3 are offered all or none.",
    "ssl.client.auth": "Another value than `none` on a listener without TLS ends the start.",
    "ssl.engine.factory.class": "A class ends the start.",
    "ssl.principal.mapping.rules": "Patterns cannot look around.",
}
_OF_TOPICS: Final = {
    "remote.storage.enable": "`true` is refused: there is no tiered storage.",
}
OF_KIND: Final[dict[Kind, dict[str, str]]] = {"broker": _OF_BROKERS, "topic": _OF_TOPICS}

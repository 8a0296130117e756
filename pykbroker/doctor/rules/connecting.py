"""The meaning of each outcome of a knock, and what helps. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..knocks import Knock, Outcome


class Meaning(NamedTuple):
    """The meaning in words. seen: a clause whose subject is the address."""

    seen: str
    advice: str


_FIXED: Final[dict[Outcome, Meaning]] = {
    Outcome.UNRESOLVED: Meaning(
        "its name has no address on this machine",
        "Use a name that this machine's resolver knows, or an address. Names of containers and of Kubernetes services "
        "are known inside their own network alone.",
    ),
    Outcome.REFUSED: Meaning(
        "the machine answers, and nobody listens on the port",
        "See that the broker runs and listens there (`listeners`), also on the interface that the name leads to: a "
        "broker on 127.0.0.1 is not reached by the machine's other addresses, nor in a container from outside of it.",
    ),
    Outcome.UNREACHABLE: Meaning(
        "no way leads to it from this machine",
        "See that the address belongs to a network that this machine has a route to. Addresses of containers lead "
        "nowhere from another machine.",
    ),
    Outcome.TIMED_OUT: Meaning(
        "nobody answers there at all",
        "A firewall that drops packets, or an address that is not in use, looks like this: see that the address and "
        "the port are right, and that the port is open.",
    ),
    Outcome.CLOSED: Meaning(
        "the connection is accepted, and closed at once without an answer",
        "A port that a container runtime forwards does so while nobody listens behind it: see that the broker listens "
        "on all addresses of its container (`listeners=PLAINTEXT://:9092`). Brokers do so for addresses that have too "
        "many connections (`max.connections.per.ip`).",
    ),
    Outcome.SILENT: Meaning(
        "the connection is accepted, and no request is answered",
        "See that the broker has started up (its log says so), and that nothing stands between that accepts "
        "connections in its place.",
    ),
    Outcome.NOT_KAFKA: Meaning("what answers is no Kafka broker", "See that the port is the broker's."),
    Outcome.CERTIFICATE_EXPIRED: Meaning(
        "the certificate of its broker has expired",
        "Give the broker a new certificate; the clock of this machine may be wrong, too.",
    ),
    Outcome.CERTIFICATE_NOT_YET_VALID: Meaning(
        "the certificate of its broker is not valid yet",
        "The clock of this machine, or of the one that made the certificate, is wrong.",
    ),
    Outcome.CERTIFICATE_OF_ANOTHER_HOST: Meaning(
        "the certificate of its broker is for other names",
        "Use one of the names in the certificate, or give the broker one with this name as an alternative name.",
    ),
    Outcome.CERTIFICATE_OF_UNKNOWN_AUTHORITY: Meaning(
        "the certificate of its broker is not signed by an authority that is trusted here",
        "Name the authority's certificate in `ssl.truststore.location` (of type PEM, PKCS12 or JKS).",
    ),
    Outcome.CERTIFICATE_BAD: Meaning(
        "the certificate of its broker does not verify", "See what is said of it, and give the broker another one."
    ),
    Outcome.CLIENT_CERTIFICATE_REFUSED: Meaning(
        "the broker does not take the certificate of this client, or misses one",
        "The listener asks for certificates (`ssl.client.auth`): name one that its authority has signed in "
        "`ssl.keystore.location`.",
    ),
    Outcome.TLS_FAILED: Meaning(
        "the two sides do not agree on TLS",
        "See that protocols and cipher suites have something in common (`ssl.enabled.protocols`, `ssl.cipher.suites`), "
        "and whether the listener asks for a certificate of the client (`ssl.client.auth`).",
    ),
    Outcome.NOT_AUTHENTICATED: Meaning(
        "the broker refuses the log-in",
        "See the user and the password in `sasl.jaas.config`, and that the broker knows the user in this mechanism "
        "(`pykbroker users --describe` for SCRAM).",
    ),
}


def meaning(knock: Knock, security_protocol: str) -> Meaning:
    """Return the words. security_protocol: of this client."""
    fixed = _FIXED.get(knock.outcome)
    if fixed is None:
        return _of_kind(knock, security_protocol)
    detail = f" ({knock.detail})" if knock.detail else ""
    return Meaning(fixed.seen + detail, fixed.advice)


def _of_kind(knock: Knock, security_protocol: str) -> Meaning:
    """The listener is another one than the client's settings say."""
    kind = knock.kind
    protocol = None if kind is None else kind.security_protocol
    offered = ", ".join(kind.mechanisms) if kind is not None else ""
    setting = f"security.protocol={protocol}" if protocol is not None else "security.protocol=SSL or SASL_SSL"
    mechanisms = f", and sasl.mechanism of {offered}" if offered else ""
    if knock.outcome is Outcome.MECHANISM_NOT_OFFERED:
        return Meaning(
            f"the listener does not offer the SASL mechanism {knock.detail}, only {offered or 'none'}",
            f"Take one that it offers (sasl.mechanism), or enable {knock.detail} there (`sasl.enabled.mechanisms`).",
        )
    seen = {
        Outcome.NEEDS_TLS: "the listener speaks TLS",
        Outcome.NO_TLS: "the listener does not speak TLS",
        Outcome.NEEDS_SASL: "the listener asks for authentication",
        Outcome.NO_SASL: "the listener asks for no authentication",
    }[knock.outcome]
    return Meaning(
        f"{seen}, and this client comes with security.protocol={security_protocol}",
        f"Give clients {setting}{mechanisms}, or the port of another listener.",
    )

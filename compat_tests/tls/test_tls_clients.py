"""Stock clients at TLS listeners: the same ones are served on both brokers, and the others are told the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.waiting import DEADLINE_S

from .identities import Identities
from .listeners import SecuredBroker
from .reasons import SERVED
from .tls_clients import Connection, TlsClient


@dataclass(frozen=True, slots=True)
class Case:
    """listener: which one is asked. trust, client: of `identities`; trust is None for a plaintext client.

    is_served: whether both brokers serve it. is_silent: Java's client says nothing of it, and tries until its timeout.
    """

    name: str
    listener: str
    trust: str | None = "the authority"
    client: str | None = None
    version: str | None = None
    is_served: bool = False
    is_silent: bool = False


def served(name: str, listener: str, client: str | None = None, version: str | None = None) -> Case:
    return Case(name, listener, client=client, version=version, is_served=True)


CASES = [
    served("a broker whose certificate is of an intermediate authority", "TLS"),
    served("a broker whose certificates stand in its properties", "INLINE"),
    served("a broker of TLS 1.2 alone", "TLS12"),
    served("a broker of TLS 1.3 alone", "TLS13"),
    served("no certificate where one is requested", "REQUESTED"),
    served("a certificate where one is requested", "REQUESTED", "alice"),
    served("a certificate where one is required", "REQUIRED", "alice"),
    served("a certificate where one is required by TLS 1.2", "REQUIRED12", "alice"),
    served("a certificate of an intermediate authority", "REQUIRED", "alice of an intermediate authority"),
    served("a certificate where none is requested", "TLS", "alice of another authority"),
    served("a name that the mapping rules know", "MAPPED", "alice"),
    Case("an authority that is not the broker's", "TLS", trust="another authority"),
    Case("a broker with another host's certificate", "ELSEWHERE"),
    Case("a broker whose certificate has expired", "EXPIRED"),
    Case("no certificate where one is required", "REQUIRED"),
    Case("no certificate where one is required by TLS 1.2", "REQUIRED12"),
    Case("a certificate of another authority", "REQUIRED", client="alice of another authority"),
    Case("a certificate of another authority by TLS 1.2", "REQUIRED12", client="alice of another authority"),
    Case("an expired certificate", "REQUIRED", client="alice who is expired"),
    Case("a certificate that is not valid yet", "REQUIRED", client="alice who is not yet valid"),
    Case("a certificate that nobody has signed", "REQUIRED", client="alice by her own word"),
    Case("a name that the mapping rules do not know", "MAPPED", client="Bob Smith", is_silent=True),
    Case("a plaintext client at a TLS port", "TLS", trust=None, is_silent=True),
    Case("a TLS client at a plaintext port", "PLAINTEXT", is_silent=True),
]
WITH_VERSIONS = [
    served("a client of TLS 1.2 alone", "TLS", version="TLSv1.2"),
    served("a client of TLS 1.3 alone", "TLS", version="TLSv1.3"),
    Case("a client of TLS 1.2 at a broker of TLS 1.3", "TLS13", version="TLSv1.2"),
    Case("a client of TLS 1.3 at a broker of TLS 1.2", "TLS12", version="TLSv1.3"),
]
JAVA = pytest.param("java", marks=[pytest.mark.java, pytest.mark.spark])
KCAT = pytest.param("kcat", marks=pytest.mark.kcat)
PYTHON_AND_C = ["librdkafka", "kafka-python", "aiokafka", KCAT]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("client", [JAVA, *PYTHON_AND_C])
def test_a_client_is_served_or_told_why_not(
    client: str,
    case: Case,
    secured: SecuredBroker,
    identities: Identities,
    client_called: Callable[[str], TlsClient],
    answers: TestAnswers,
) -> None:
    attempt(client_called(client), case, secured, identities, answers)


@pytest.mark.parametrize("case", WITH_VERSIONS, ids=lambda case: case.name)
@pytest.mark.parametrize("client", [JAVA, "kafka-python", "aiokafka", KCAT])
def test_a_client_of_one_protocol_version_is_served_or_told_why_not(
    client: str,
    case: Case,
    secured: SecuredBroker,
    identities: Identities,
    client_called: Callable[[str], TlsClient],
    answers: TestAnswers,
) -> None:
    """librdkafka has no option for it."""
    attempt(client_called(client), case, secured, identities, answers)


def attempt(
    client: TlsClient, case: Case, secured: SecuredBroker, identities: Identities, answers: TestAnswers
) -> None:
    outcome = client.attempt(connection_of(case, secured, identities))
    answers.same(case.name, outcome)
    assert (outcome == SERVED) == case.is_served


def connection_of(case: Case, secured: SecuredBroker, identities: Identities) -> Connection:
    return Connection(
        secured.bootstrap(case.listener),
        trust=identities.trust(case.trust) if case.trust else None,
        certificate=identities.certificate(case.client) if case.client else None,
        version=case.version,
        patience_s=1 if case.is_silent else DEADLINE_S,
    )


@pytest.mark.parametrize("client", [JAVA, *PYTHON_AND_C])
def test_a_bad_certificate_is_refused_where_one_is_only_requested(
    client: str,
    kind: str,
    secured: SecuredBroker,
    identities: Identities,
    client_called: Callable[[str], TlsClient],
    answers: TestAnswers,
) -> None:
    """Apache Kafka tells which authorities it trusts, and some clients then keep a certificate of another one back."""
    case = Case("a bad certificate", "REQUESTED", client="alice of another authority")
    outcome = client_called(client).attempt(connection_of(case, secured, identities))
    keeps_it_back = kind == "apache-kafka" and client in ("java", "librdkafka")
    answers.expect(case.name, outcome == SERVED, keeps_it_back)

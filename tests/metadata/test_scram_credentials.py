"""Users' SCRAM credentials: which changes the controller takes, and what the image and its snapshots have of them."""

import pytest

from pykbroker.long_work import whole
from pykbroker.metadata.image import MetadataImage
from pykbroker.metadata.scram_credentials import describe_user_scram_credentials
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from pykbroker.security.sasl.scram_credential import MECHANISMS

from .admin import Admin
from .cluster import Cluster, one_node

SHA_256, SHA_512, UNKNOWN = 1, 2, 0
TWICE = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
DONE = (ErrorCode.NONE, None)


def deletion(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"salted"
    )


def alter(
    cluster: Cluster, *changes: ScramCredentialDeletion | ScramCredentialUpsertion
) -> dict[str, tuple[int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    response: AlterUserScramCredentialsResponse = cluster.ask(request)
    outcomes = {each.user: (each.error_code, each.error_message) for each in response.results}
    assert len(outcomes) == len(response.results)
    return outcomes


def users(image: MetadataImage) -> set[tuple[int, str]]:
    return set(image.scram_credentials)


def test_a_user_is_set_changed_and_deleted() -> None:
    cluster = one_node()
    assert alter(cluster, upsertion("alice"), upsertion("bob", SHA_512, 16384)) == {"alice": DONE, "bob": DONE}
    assert users(cluster.replayed()) == {(SHA_256, "alice"), (SHA_512, "bob")}
    assert alter(cluster, upsertion("alice", SHA_256, 8192)) == {"alice": DONE}
    assert cluster.image.scram_credentials[SHA_256, "alice"].iterations == 8192
    assert alter(cluster, deletion("alice"), deletion("bob", SHA_512)) == {"alice": DONE, "bob": DONE}
    assert not users(cluster.replayed())


def test_a_user_who_came_and_went_takes_nobody_along() -> None:
    """Apache Kafka 4.3.1 may know no user any more when it reads both changes at once, as it does when it starts."""
    cluster = one_node()
    for change in (upsertion("alice", SHA_512), upsertion("carol", SHA_512), deletion("carol", SHA_512)):
        alter(cluster, change)
    assert users(cluster.replayed()) == {(SHA_512, "alice")}


def test_what_is_recorded_follows_from_the_salted_password_and_does_not_tell_it() -> None:
    cluster = one_node()
    records, _ = cluster.step(AlterUserScramCredentialsRequest(upsertions=[upsertion("alice")]))
    mechanism = MECHANISMS["SCRAM-SHA-256"]
    assert records == [
        UserScramCredentialRecord(
            name="alice",
            mechanism=SHA_256,
            salt=b"salt",
            stored_key=mechanism.hash(mechanism.hmac(b"salted", b"Client Key")),
            server_key=mechanism.hmac(b"salted", b"Server Key"),
            iterations=4096,
        )
    ]


@pytest.mark.parametrize(
    ("change", "error_code", "message"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (deletion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("a", UNKNOWN), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (deletion("a", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("a", SHA_512, 4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("a", SHA_512, 16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (
            deletion("alice", SHA_512),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
        (
            ScramCredentialUpsertion(name="a", mechanism=SHA_256, iterations=4096, salt=b"salt"),
            ErrorCode.UNKNOWN_SERVER_ERROR,
            None,
        ),
    ],
)
def test_one_user_is_refused_and_the_others_are_not(
    change: ScramCredentialDeletion | ScramCredentialUpsertion, error_code: ErrorCode, message: str | None
) -> None:
    cluster = one_node()
    alter(cluster, upsertion("alice"))
    assert alter(cluster, change, upsertion("bob")) == {"bob": DONE, change.name: (error_code, message)}
    assert users(cluster.image) == {(SHA_256, "alice"), (SHA_256, "bob")}


@pytest.mark.parametrize(
    "changes",
    [
        [upsertion("alice"), upsertion("alice", SHA_512)],
        [deletion("alice"), deletion("alice")],
        [deletion("alice"), upsertion("alice", SHA_512)],
        [deletion("alice"), upsertion("alice"), upsertion("alice")],
    ],
)
def test_a_user_who_is_named_twice_stays_as_it_is(
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion],
) -> None:
    cluster = one_node()
    alter(cluster, upsertion("alice"))
    before = len(cluster.log)
    assert alter(cluster, *changes) == {"alice": TWICE}
    assert len(cluster.log) == before


def test_the_first_error_of_a_user_counts() -> None:
    outcomes = alter(one_node(), deletion("alice"), upsertion("alice"))
    assert outcomes["alice"][0] == ErrorCode.RESOURCE_NOT_FOUND


def test_nothing_asked_is_nothing_done() -> None:
    assert alter(one_node()) == {}


def test_too_many_changes_are_refused_for_each_user() -> None:
    outcomes = alter(one_node(), *(upsertion(f"user-{number}") for number in range(10_001)))
    assert len(outcomes) == 10_001
    assert {code for code, _ in outcomes.values()} == {ErrorCode.POLICY_VIOLATION}


def test_a_cluster_of_an_older_metadata_version_has_no_scram() -> None:
    cluster = one_node()
    old = FeatureLevelRecord(name="metadata.version", feature_level=10)
    cluster.controller.replay(old, len(cluster.log))
    outcomes = alter(cluster, upsertion("alice"))
    assert outcomes["alice"] == (ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")


def test_users_are_described_without_their_keys() -> None:
    cluster = one_node()
    alter(cluster, upsertion("alice"), upsertion("bob"))
    alter(cluster, upsertion("alice", SHA_512, 8192))

    def described(*names: str) -> dict[str, object]:
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=each) for each in names] if names else None)
        response = whole(describe_user_scram_credentials(cluster.image, request))
        assert (response.error_code, response.error_message) == (0, "")
        return {
            each.user: [(info.mechanism, info.iterations) for info in each.credential_infos]
            or (each.error_code, each.error_message)
            for each in response.results
        }

    both = {"alice": [(SHA_256, 4096), (SHA_512, 8192)], "bob": [(SHA_256, 4096)]}
    assert described() == both
    assert described("bob") == {"bob": both["bob"]}
    assert described("bob", "carol", "alice", "alice") == {
        "bob": both["bob"],
        "carol": (
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: carol",
        ),
        "alice": (
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: alice",
        ),
    }


def test_both_kinds_of_listeners_serve_both_requests() -> None:
    admin = Admin(one_node())
    changed = admin.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion("alice")]), 0)
    assert [each.error_code for each in changed.results] == [0]
    for kind in ("broker", "controller"):
        described = admin.ask(DescribeUserScramCredentialsRequest(users=None), 0, kind)
        assert [each.user for each in described.results] == ["alice"]


def test_views_and_snapshots_have_the_credentials_between_acls_and_tokens() -> None:
    image = MetadataImage()
    acl, token = AccessControlEntryRecord(id=b"a" * 16), DelegationTokenRecord(token_id="t")
    alice = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=5000
    )
    for offset, record in enumerate([token, alice, acl]):
        image.replay(record, offset)
    view = image.view()
    assert list(view.records()) == [acl, alice, token]
    image.replay(RemoveUserScramCredentialRecord(name="alice", mechanism=1), 3)
    image.replay(RemoveUserScramCredentialRecord(name="nobody", mechanism=1), 4)
    assert list(image.records()) == [acl, token]
    assert users(view) == {(1, "alice")}
    assert view != image

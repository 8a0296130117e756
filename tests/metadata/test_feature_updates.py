"""UpdateFeatures: which levels a cluster's features may move to, as Apache Kafka 4.3.1 answers."""

import pytest

from pykbroker.metadata.features import feature_level, finalized_features
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    BrokerRegistrationRequest,
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from pykbroker.protocol.messages.brokers import Feature as BrokerFeature

from .cluster import CLUSTER_ID, Cluster, directory_id, one_node

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def update(cluster: Cluster, *updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesResponse:
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=type_)
            for name, level, type_ in updates
        ],
        validate_only=validate_only,
    )
    answer: UpdateFeaturesResponse = cluster.ask(request)
    return answer


def test_a_new_cluster_has_the_greatest_levels() -> None:
    assert finalized_features(one_node().image) == {
        "metadata.version": 30,
        "group.version": 1,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
        "streams.version": 1,
        "share.version": 1,
    }


@pytest.mark.parametrize("downgrade", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_a_feature_goes_down_and_up_again(downgrade: int) -> None:
    cluster = one_node()
    assert update(cluster, ("group.version", 0, downgrade)).error_code == 0
    assert feature_level(cluster.replayed(), "group.version") == 0
    assert "group.version" not in finalized_features(cluster.image)
    assert update(cluster, ("group.version", 1, UPGRADE)).error_code == 0
    assert feature_level(cluster.replayed(), "group.version") == 1


def test_what_is_at_the_level_is_left_as_it_is() -> None:
    cluster = one_node()
    request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=1)])
    records, answer = cluster.step(request)
    assert (records, answer.error_code) == ([], 0)


def test_a_dry_run_changes_nothing() -> None:
    cluster = one_node()
    assert update(cluster, ("group.version", 0, SAFE_DOWNGRADE), validate_only=True).error_code == 0
    assert feature_level(cluster.image, "group.version") == 1


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (("group.version", 2, UPGRADE), "Local controller 1 only supports versions 0-1"),
        (("group.version", 0, UPGRADE), "Can't downgrade the version of this feature without setting"),
        (("nosuch.version", 1, UPGRADE), "Local controller 1 does not support this feature."),
        (("nosuch.version", 0, SAFE_DOWNGRADE), "Feature nosuch.version not found."),
        (("group.version", -1, UPGRADE), "A feature version cannot be less than 0."),
        (("transaction.version", 2, 0), "The controller does not support the given upgrade type."),
        (("metadata.version", 31, UPGRADE), "Local controller 1 only supports versions 30-30"),
        (("kraft.version", 2, UPGRADE), "Local controller 1 only supports versions 0-1"),
    ],
)
def test_all_are_refused_where_one_is(refused: tuple[str, int, int], reason: str) -> None:
    cluster = one_node()
    answer = update(cluster, ("transaction.version", 1, SAFE_DOWNGRADE), refused)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message is not None
    assert reason in answer.error_message
    assert feature_level(cluster.image, "transaction.version") == 2


def test_going_down_is_no_way_up() -> None:
    cluster = one_node()
    update(cluster, ("group.version", 0, SAFE_DOWNGRADE))
    answer = update(cluster, ("group.version", 1, SAFE_DOWNGRADE))
    assert "Can't downgrade to a newer version." in (answer.error_message or "")


def test_every_broker_must_know_the_level() -> None:
    cluster = one_node()
    update(cluster, ("transaction.version", 0, SAFE_DOWNGRADE))
    old = [
        BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),
        BrokerFeature(name="group.version", min_supported_version=0, max_supported_version=1),
        BrokerFeature(name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1),
        BrokerFeature(name="streams.version", min_supported_version=0, max_supported_version=1),
        BrokerFeature(name="share.version", min_supported_version=0, max_supported_version=1),
        BrokerFeature(name="transaction.version", min_supported_version=0, max_supported_version=1),
    ]
    request = BrokerRegistrationRequest(
        broker_id=2, cluster_id=CLUSTER_ID, incarnation_id=b"2" * 16, features=old, log_dirs=[directory_id(2)]
    )
    assert cluster.ask(request).error_code == 0
    answer = update(cluster, ("transaction.version", 2, UPGRADE))
    assert "Broker 2 only supports versions 0-1" in (answer.error_message or "")
    assert update(cluster, ("transaction.version", 1, UPGRADE)).error_code == 0

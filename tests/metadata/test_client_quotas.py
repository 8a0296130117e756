"""Quotas of clients in the controller's rules, in the image and its views, in snapshots and in differences."""

from __future__ import annotations

import math

from pykbroker.metadata.image import MetadataImage
from pykbroker.metadata.image_difference import difference
from pykbroker.metadata.request_context import ControllerRequestContext
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata_records import ClientQuotaRecord, EntityData
from pykbroker.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    OpData,
)
from pykbroker.protocol.messages.quotas import EntityData as RequestedEntity
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from pykbroker.quotas.controller_mutations import ControllerMutations
from pykbroker.quotas.rate import QuotaWindows
from pykbroker.state_machine import Token
from tests.metadata.cluster import Cluster

BOB = frozenset({("user", "bob")})
EVE = frozenset({("user", "eve"), ("client-id", None)})


def quota(name: str, value: float, *, remove: bool = False) -> ClientQuotaRecord:
    entity = [EntityData(entity_type="user", entity_name=name)]
    return ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=value, remove=remove)


def set_quota(name: str | None, *ops: tuple[str, float | None], kind: str = "user") -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[RequestedEntity(entity_type=kind, entity_name=name)],
                ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
            )
        ]
    )


def altered(cluster: Cluster, request: AlterClientQuotasRequest) -> tuple[int, str | None]:
    response = cluster.ask(request)
    assert isinstance(response, AlterClientQuotasResponse)
    [row] = response.entries
    return row.error_code, row.error_message


def test_the_latest_record_counts_until_it_is_removed() -> None:
    image = MetadataImage()
    changes = image.replay(quota("bob", 1.0), 0)
    assert changes
    assert list(changes.client_quotas) == [BOB]
    before = image.view()
    image.replay(quota("bob", 2.0), 1)
    assert image.client_quotas == {BOB: {"producer_byte_rate": 2.0}}
    assert before.client_quotas == {BOB: {"producer_byte_rate": 1.0}}
    image.replay(quota("bob", 0.0, remove=True), 2)
    assert not image.client_quotas


def test_a_snapshot_gives_the_quotas_again() -> None:
    image, copy = MetadataImage(), MetadataImage()
    names = {"user": "eve", "client-id": None}
    default = [EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()]
    image.replay(quota("bob", 1.0), 0)
    image.replay(ClientQuotaRecord(entity=default, key="request_percentage", value=0.5), 1)
    for record in image.records():
        copy.replay(record, 1)
    assert copy == image
    assert copy.client_quotas == {BOB: {"producer_byte_rate": 1.0}, EVE: {"request_percentage": 0.5}}


def test_a_snapshot_in_place_of_the_log_tells_whose_quotas_differ() -> None:
    old, new = MetadataImage(), MetadataImage()
    for number, name in enumerate(("same", "gone", "other")):
        old.replay(quota(name, 1.0), number)
    for number, (name, value) in enumerate((("same", 1.0), ("other", 2.0), ("new", 1.0))):
        new.replay(quota(name, value), number)
    found = {name for entity in difference(old, new).client_quotas for _, name in entity}
    assert found == {"gone", "other", "new"}


def test_only_what_changes_is_recorded() -> None:
    cluster = Cluster()
    records, _ = cluster.step(set_quota("bob", ("producer_byte_rate", 5.0), ("request_percentage", 1.5)))
    assert len(records) == 2
    records, _ = cluster.step(set_quota("bob", ("producer_byte_rate", 5.0), ("request_percentage", None)))
    assert [(record.key, record.remove) for record in records] == [("request_percentage", True)]
    assert cluster.image.client_quotas == {BOB: {"producer_byte_rate": 5.0}}
    assert cluster.replayed().client_quotas == cluster.image.client_quotas


def test_one_bad_value_keeps_all_of_its_entity_from_changing() -> None:
    cluster = Cluster()
    code, text = altered(cluster, set_quota("bob", ("producer_byte_rate", 5.0), ("consumer_byte_rate", -1.0)))
    assert (code, text) == (ErrorCode.INVALID_REQUEST, "Quota consumer_byte_rate must be greater than 0")
    assert not cluster.image.client_quotas


def test_what_is_not_a_number_is_no_quota() -> None:
    code, text = altered(Cluster(), set_quota("bob", ("request_percentage", math.nan)))
    assert (code, text) == (ErrorCode.INVALID_REQUEST, "Quota request_percentage must be greater than 0")


def test_a_host_that_has_no_address_is_refused() -> None:
    cluster = Cluster()
    request = set_quota("nowhere", ("connection_creation_rate", 5.0), kind="ip")
    context = ControllerRequestContext(unknown_hosts=frozenset({"nowhere"}))
    result = cluster.controller.handle(request, Token(1), 0, context=context)
    [row] = result.completed[0].response.entries
    assert row.error_message == "nowhere is not a valid IP or resolvable host."
    assert altered(cluster, request)[0] == ErrorCode.NONE


def test_more_changes_than_one_batch_holds_are_refused_as_a_whole() -> None:
    ops = [(f"key {number}", None) for number in range(10_001)]
    code, _ = altered(Cluster(), set_quota("bob", *ops))
    assert code == ErrorCode.POLICY_VIOLATION


def test_a_topic_that_is_over_its_clients_quota_is_refused_and_the_others_are_not() -> None:
    cluster, mutations = Cluster(), ControllerMutations(QuotaWindows(1, 1000))
    cluster.add_broker()
    mutations.set_limit(BOB, 2.0)
    topics = [
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        for name, partitions in (("a", 2), ("b", 3), ("c", 1))
    ]
    quota_of_bob = mutations.quota_of("bob", "", 0, is_strict=True)
    context = ControllerRequestContext(quota_of_bob)
    result = cluster.controller.handle(CreateTopicsRequest(topics=topics), Token(1), 0, context=context)
    codes = {row.name: row.error_code for row in result.completed[0].response.topics}
    assert codes == {"a": ErrorCode.NONE, "b": ErrorCode.NONE, "c": ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    cluster.take(result)
    assert set(cluster.image.topics) == {"a", "b"}
    late = ControllerRequestContext(quota_of_bob)
    grown = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=4, assignments=None)])
    deleted = DeleteTopicsRequest(topic_names=["a"])
    for request, rows in ((grown, "results"), (deleted, "responses")):
        response = cluster.controller.handle(request, Token(2), 0, context=late).completed[0].response
        assert [row.error_code for row in getattr(response, rows)] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        assert cluster.ask(request) is not None

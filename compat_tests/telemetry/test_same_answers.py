"""GetTelemetrySubscriptions, PushTelemetry and the configurations of client metrics, answered as by Apache Kafka."""

import hashlib
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import BrokerProcess
from compat_tests.test_api_versions import advertised
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    ListConfigResourcesRequest,
)
from pykbroker.protocol.records.compression import Compression, compress

from .pushing_client import NO_ID, SOME, PushingClient, alter_subscription, gauges

TOO_EARLY = 89
MEBIBYTE = 1 << 20

NewId = Callable[[], bytes]


@pytest.fixture
def new_id(request: pytest.FixtureRequest) -> NewId:
    """Client instance ids of the test's own, the same in every run."""
    base = hashlib.sha256(request.node.originalname.encode()).digest()[:14]
    numbers = count()
    return lambda: base + next(numbers).to_bytes(2, "big")


@pytest.fixture
def client(receiver: BrokerProcess, unique: Any) -> Iterator[PushingClient]:
    with PushingClient(receiver.address, client_id=unique("client"), software=unique("software")) as client:
        yield client


def shown(answer: Any) -> dict[str, Any]:
    """An answer with subscriptions; the ids of clients are the test's own, so that nothing in it is chance."""
    return {
        "error_code": answer.error_code,
        "client_instance_id": bytes(answer.client_instance_id).hex(),
        "subscription_id": answer.subscription_id,
        "accepted_compression_types": answer.accepted_compression_types,
        "push_interval_ms": answer.push_interval_ms,
        "telemetry_max_bytes": answer.telemetry_max_bytes,
        "delta_temporality": answer.delta_temporality,
        "requested_metrics": answer.requested_metrics,
        "throttle_time_ms": answer.throttle_time_ms,
    }


def test_the_apis_are_offered_while_there_is_a_subscription(
    receiver: BrokerProcess, answers: TestAnswers, unique: Any
) -> None:
    apis = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY, ApiKey.LIST_CONFIG_RESOURCES)
    name = unique("subscription")
    assert alter_subscription(receiver.address, name, metrics="*") == (0, None)
    until(lambda: ApiKey.PUSH_TELEMETRY in advertised(receiver), "the APIs are offered")
    found = advertised(receiver)
    alter_subscription(receiver.address, name, metrics=None)
    answers.same("versions", {key.name: found.get(key) for key in apis})


def test_subscriptions_are_those_that_match(
    receiver: BrokerProcess, answers: TestAnswers, unique: Any, new_id: NewId
) -> None:
    names = [f"metric.{number}" for number in range(40)]
    name = "matching"  # the same in every run: the order of metrics hangs on the names of subscriptions
    address, mine, other = receiver.address, unique("mine"), unique("other")
    cases = {
        "one": {"metrics": "b,a", "interval_ms": "200", "match": f"client_id={mine}"},
        "software": {"metrics": "c,a", "interval_ms": "5000", "match": f"client_software_name={mine}"},
        "both must match": {"metrics": "d", "match": f"client_id={mine},client_software_version=2.*"},
        "address": {"metrics": "e", "match": f"client_source_address=127.*,client_id={mine}.*"},
        "the last of two counts": {"metrics": "f", "match": f"client_id={mine},client_id={other}"},
        "nothing for a part": {"metrics": "g", "match": f"client_id={mine[:-1]}"},
        "instance": {"metrics": "h", "match": f"client_instance_id=.*,client_id={mine}"},
        "port": {"metrics": "i", "match": f"client_source_port=[0-9]+,client_id={mine}"},
        "many": {"metrics": ",".join(names), "match": f"client_id={mine}"},
        "no metrics": {"metrics": "", "interval_ms": "150", "match": f"client_id={mine}"},
        "all": {"metrics": "*", "match": f"client_id={mine}"},
        "twice": {"metrics": "q,q", "match": f"client_id={mine}"},
    }
    fixed = [new_id() for _ in range(3)]
    for case, configs in cases.items():
        assert alter_subscription(address, f"{name}-{case}", **configs) == (0, None)  # type: ignore[arg-type]
        _until_known(receiver, f"{name}-{case}")
        for number, (client_id, software) in enumerate([(mine, mine), (other, "x"), (None, None)]):
            with PushingClient(address, client_id=client_id, software=software) as client:
                answers.same(f"{case}, client {number}", shown(client.get(fixed[number])))
    for case in cases:
        alter_subscription(address, f"{name}-{case}", metrics=None, match=None, interval_ms=None)


def _until_known(broker: BrokerProcess, name: str) -> None:
    """Brokers follow the metadata a moment behind the answer."""
    until(lambda: name in _listed(broker), f"the subscription {name} is known")


def _listed(broker: BrokerProcess, version: int = 0) -> list[str]:
    with Wire(broker.address) as wire:
        answer: Any = wire.call(ListConfigResourcesRequest(resource_types=[16] if version else []), version)
    assert answer.error_code == 0
    assert all(each.resource_type == 16 for each in answer.config_resources)
    return sorted(each.resource_name for each in answer.config_resources)


def test_pushes_and_their_times(client: PushingClient, answers: TestAnswers) -> None:
    first = client.get()
    instance, subscription = bytes(first.client_instance_id), first.subscription_id
    answers.same("an id was made", (first.error_code, instance != NO_ID))
    answers.same("asked again too early", shown(client.get(instance)))
    answers.same("first push", client.push(instance, subscription, SOME))
    answers.same("second push too early", client.push(instance, subscription, SOME))
    answers.same("the last push may come at once", client.push(instance, subscription, SOME, terminating=True))
    answers.same("behind the last one", client.push(instance, subscription, SOME, terminating=True))
    answers.same("asked behind the last one", shown(client.get(instance)))


def test_wrong_pushes(client: PushingClient, answers: TestAnswers, new_id: NewId) -> None:
    answers.same("no id", client.push(NO_ID, 0, SOME))
    answers.same("the reserved id", client.push(bytes(15) + b"\1", 0, SOME))
    answers.same("an id that nobody knows", client.push(new_id(), 5, SOME))
    large = gauges([("a" * 3 * MEBIBYTE, 1, {})]).SerializeToString()
    wrong = {
        "nothing": (b"", 0),
        "garbage": (b"\xff\xff\xff", 0),
        "cut off": (SOME[:-1], 0),
        "damaged zstd": (b"\xff\xff\xff", 4),
        "damaged gzip": (b"\xff\xff\xff", 1),
        "unknown compression": (SOME, 9),
        "negative compression": (SOME, -1),
        "too large": (bytes(MEBIBYTE + 1), 0),
    }
    for codec in Compression:
        wrong[f"{codec.name}"] = (compress(codec, SOME), int(codec))
        if codec:
            wrong[f"much in little {codec.name}"] = (compress(codec, large), int(codec))
    for what, (metrics, compression) in wrong.items():
        instance = new_id()
        subscription = client.get(instance).subscription_id
        answers.same(what, client.push(instance, subscription, metrics, compression=compression))
        answers.same(f"asked again behind {what}", client.get(instance).error_code)
        answers.same(f"pushed again behind {what}", client.push(instance, subscription, SOME))


def test_a_change_of_subscriptions_is_heard_of_at_once(
    receiver: BrokerProcess, client: PushingClient, answers: TestAnswers, unique: Any, new_id: NewId
) -> None:
    name, instance = unique("subscription"), new_id()
    before = client.get(instance)
    of_this_test = unique("software").partition(".")[0]
    alter_subscription(receiver.address, name, metrics="new", match=f"client_software_name={of_this_test}.*")
    _until_known(receiver, name)
    answers.same("the old subscription", client.push(instance, before.subscription_id, SOME))
    answers.same("the new one", shown(client.get(instance)))
    alter_subscription(receiver.address, name, metrics=None, match=None)
    until(lambda: name not in _listed(receiver), "the subscription is gone")
    answers.same("none again", shown(client.get(instance)))


def test_an_interval_that_is_over_lets_the_next_push_in(
    receiver: BrokerProcess, unique: Any, answers: TestAnswers, new_id: NewId
) -> None:
    name, client_id = unique("subscription"), unique("client")
    alter_subscription(receiver.address, name, metrics="*", interval_ms="100", match=f"client_id={client_id}")
    _until_known(receiver, name)
    with PushingClient(receiver.address, client_id=client_id) as client:
        instance = new_id()
        subscription = client.get(instance).subscription_id
        codes = [client.push(instance, subscription, SOME)]
        until(lambda: codes.append(client.push(instance, subscription, SOME)) or codes[-1] == 0, "it may push again")
        until(lambda: client.get(instance).error_code == 0, "it may ask again")
    answers.same("codes", sorted({*codes, TOO_EARLY}))


def test_a_client_whose_connection_has_ended_is_a_new_one(
    receiver: BrokerProcess, answers: TestAnswers, new_id: NewId
) -> None:
    instance = new_id()
    with PushingClient(receiver.address) as first, PushingClient(receiver.address) as second:
        answers.same("first", first.get(instance).error_code)
        answers.same("by another connection", second.get(instance).error_code)
    with PushingClient(receiver.address) as third:
        until(lambda: third.get(instance).error_code == 0, "the client is forgotten")


CONFIGS = [
    *(("metrics", value) for value in ("*", "", "a,b", "a,a", "a,,b", " a , b ")),
    *(("interval.ms", value) for value in ("99", "100", "3600000", "3600001", "x", "", " 200 ", "99999999999")),
    *(("match", value) for value in ("", "client_id=a.*", "client_id", "client_id=", "client_id=a=b", "nothing=a")),
    *(("match", value) for value in (" client_id = a.* ", "client_id=[", "client_id=a,client_id=b", "=", "=a")),
    *(("match", value) for value in ("client_id=x=", "client_source_port=1,", "client_software_version=3\\.9\\..*")),
    ("other", "1"),
]


def test_configurations_of_a_subscription(receiver: BrokerProcess, answers: TestAnswers, unique: Any) -> None:
    address, name = receiver.address, unique("subscription")
    answers.same("nobody's", _described(receiver, unique("nobody")))
    answers.same("without a name", _described(receiver, ""))
    answers.same("set without a name", alter_subscription(address, "", metrics="a"))
    for number, (key, value) in enumerate(CONFIGS):
        one = f"{name}-{number}"
        done = alter_subscription(address, one, **{key.replace(".", "_"): value})
        answers.same(f"set {key}={value}", done)
        if not done[0]:
            _until_known(receiver, one)
            answers.same(f"described {key}={value}", _described(receiver, one))
            alter_subscription(address, one, **{key.replace(".", "_"): None})
    alter_subscription(address, name, metrics="a", interval_ms="1000")
    _until_known(receiver, name)
    answers.same("two keys asked for", _described(receiver, name, ["metrics", "no.such"]))
    answers.same("replaced", _replaced(receiver, name, match="client_id=a"))
    until(lambda: _described(receiver, name)["configs"]["metrics"][1] == 5, "the replacement is known")
    answers.same("described behind it", _described(receiver, name))
    answers.same("replaced by something wrong", _replaced(receiver, name, other="client_id=a"))
    answers.same("listed", [each.replace(name, "it") for each in _listed(receiver, 1) if name in each])
    answers.same("replaced by nothing", _replaced(receiver, name))
    until(lambda: name not in _listed(receiver), "the subscription is gone")


def _described(broker: BrokerProcess, name: str, keys: list[str] | None = None) -> dict[str, Any]:
    """Its keys with value, source, type and synonyms."""
    resource = DescribeConfigsResource(resource_type=16, resource_name=name, configuration_keys=keys)
    with Wire(broker.address) as wire:
        answer: Any = wire.call(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4)
    [result] = answer.results
    configs = {
        row.name: (
            row.value,
            row.config_source,
            row.config_type,
            row.read_only,
            row.is_sensitive,
            [(each.name, each.value, each.source) for each in row.synonyms],
        )
        for row in result.configs
    }
    return {"error": (result.error_code, result.error_message), "configs": configs}


def _replaced(broker: BrokerProcess, name: str, **configs: str) -> tuple[int, str | None]:
    rows = [AlterConfigsRequestAlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = AlterConfigsRequestAlterConfigsResource(resource_type=16, resource_name=name, configs=rows)
    with Wire(broker.address) as wire:
        answer: Any = wire.call(AlterConfigsRequest(resources=[resource]), 2)
    [row] = answer.responses
    return row.error_code, row.error_message

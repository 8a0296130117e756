"""The Kubernetes example: valid by Kubernetes' schemas, and its names, ports and numbers fit one another."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("yaml", reason="needs PyYAML of the extra `test`")

from compat_tests.container.manifests import container, documents, of_kind, pods, stateful_set
from pykbroker.config import BrokerConfig

from .builders import read


@pytest.mark.parametrize("number", range(4))
def test_a_document_is_valid_by_its_schema(number: int) -> None:
    validation = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate of the extra `test`")
    document = documents()[number]
    validation.validate(document, validation.latest_version(), strict=True)
    with pytest.raises(validation.ValidationError):
        validation.validate({**document, "sepc": {}}, validation.latest_version(), strict=True)


def test_everything_selects_the_pods() -> None:
    labels = stateful_set()["spec"]["template"]["metadata"]["labels"]
    selectors: list[Any] = [each["spec"]["selector"] for each in of_kind("Service")]
    selectors += [each["spec"]["selector"]["matchLabels"] for each in [*of_kind("PodDisruptionBudget"), stateful_set()]]
    assert selectors == [labels] * 4


def test_the_pods_have_their_names_from_the_headless_service() -> None:
    headless = {each["metadata"]["name"]: each["spec"] for each in of_kind("Service") if each["spec"].get("clusterIP")}
    spec = headless[stateful_set()["spec"]["serviceName"]]
    assert spec["clusterIP"] == "None"
    assert spec["publishNotReadyAddresses"] is True


def test_an_update_goes_on_when_a_node_is_ready_for_a_while_and_large_volumes_keep_their_owner() -> None:
    spec = stateful_set()["spec"]
    assert spec["minReadySeconds"] >= 10
    pod = spec["template"]["spec"]
    assert pod["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"
    assert pod["automountServiceAccountToken"] is False, "a broker asks nothing of Kubernetes"


def test_ports_of_services_are_ports_of_the_pods() -> None:
    ports = {each["name"]: each["containerPort"] for each in container()["ports"]}
    for service in of_kind("Service"):
        for port in service["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]
    assert {config_of(number).listeners.client[0].port for number in range(3)} == {ports["clients"]}
    assert {config_of(number).listeners.controller[0].port for number in range(3)} == {ports["controllers"]}


def test_each_pod_is_the_voter_of_its_number_and_advertises_its_name() -> None:
    for number, pod in enumerate(pods()):
        config = config_of(number)
        assert config.node_id == number
        assert config.quorum_voters[number] == (f"{pod.name}.pykbroker", 9093)
        assert [str(each) for each in config.listeners.advertised] == [f"PLAINTEXT://{pod.name}.pykbroker:9092"]
    assert len(config_of(0).quorum_voters) == stateful_set()["spec"]["replicas"]


def test_the_data_are_in_the_volume_that_is_claimed() -> None:
    mounts = {each["name"]: each["mountPath"] for each in container()["volumeMounts"]}
    (claim,) = stateful_set()["spec"]["volumeClaimTemplates"]
    assert config_of(0).log_dirs == [f"{mounts[claim['metadata']['name']]}/data"]
    volumes = {each["name"] for each in stateful_set()["spec"]["template"]["spec"]["volumes"]}
    assert mounts.keys() == volumes | {claim["metadata"]["name"]}


def config_of(number: int) -> BrokerConfig:
    node = read({**pods()[number].environment, "PATH": "/usr/bin:/bin"})
    assert node.notes == []
    return BrokerConfig.load(node.file, node.properties, node.defaults)

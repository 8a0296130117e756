"""The compose files: valid by the Compose Specification, coherent, and with variables that mean something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("yaml", reason="needs PyYAML of the extra `test`")

from compat_tests.container.compose_files import DOCKER, FILES, OUR_IMAGE, load, services
from pykbroker.config import BrokerConfig
from pykbroker.container.environment import read_environment
from pykbroker.container.places import Places

NAMES = [path.name for path in FILES]
MEANINGLESS = {"compose-from-apache.yaml": ["KAFKA_HEAP_OPTS"], "compose-from-bitnami.yaml": ["KAFKA_HEAP_OPTS"]}


def test_every_kind_of_set_up_has_a_file() -> None:
    assert set(NAMES) >= {
        "compose.yaml",
        "compose-cluster.yaml",
        "compose-from-apache.yaml",
        "compose-from-bitnami.yaml",
        "compose-kafka.yaml",
        "compose-secure.yaml",
        "compose-spark.yaml",
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_valid_by_the_specification(name: str) -> None:
    specification = pytest.importorskip("compose_spec", reason="needs compose-spec of the extra `test`")
    parsed = specification.PyCompose.from_json(json.dumps(load(name)))
    parsed.validate()
    assert set(parsed.service_names()) == set(load(name)["services"])
    with pytest.raises(ValueError, match="volums"):
        specification.PyCompose.from_json('{"services": {"a": {"image": "a", "volums": []}}}')


@pytest.mark.parametrize("name", NAMES)
def test_volumes_are_declared_and_mounted_files_exist(name: str) -> None:
    sources = {source for each in services(name) for source in each.volumes.values()}
    named = {source for source in sources if not source.startswith(".")}
    assert named == set(load(name).get("volumes", {}))
    assert [source for source in sources - named if not (DOCKER / source).is_file()] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_of_a_node_means_something(name: str, tmp_path: Path) -> None:
    for each in services(name):
        if each.image != OUR_IMAGE or each.ends or each.command:
            continue
        node = read_environment(each.environment, Places(tmp_path))
        expected = MEANINGLESS.get(name, [])
        assert node.notes == ([f"without meaning in pykbroker: {', '.join(expected)}"] if expected else [])
        files = [DOCKER / source for place, source in each.volumes.items() if place.endswith("server.properties")]
        config = BrokerConfig.load(files[0] if files else None, node.properties, node.defaults)
        assert (config.unknown_keys, config.without_effect) == ([], [])


@pytest.mark.parametrize("name", NAMES)
def test_published_ports_are_those_of_listeners(name: str) -> None:
    for service, spec in load(name)["services"].items():
        if spec["image"] != OUR_IMAGE:
            continue
        text = json.dumps(spec) + "".join((DOCKER / each).read_text() for each in mounted(name, service))
        default = (DOCKER / "server.properties").read_text()
        for port in spec.get("ports", []):
            assert f":{port.split(':')[-1]}" in (text if "LISTENERS" in text or "listeners" in text else default), port


def mounted(name: str, service: str) -> list[str]:
    (found,) = [each for each in services(name) if each.name == service]
    return [source for source in found.volumes.values() if source.startswith(".")]


def test_what_was_moved_says_what_it_was() -> None:
    for name, was in (("apache", "apache/kafka:"), ("bitnami", "bitnami/kafka:")):
        lines = (DOCKER / f"compose-from-{name}.yaml").read_text().splitlines()
        images = [line for line in lines if line.strip().startswith("image:")]
        assert all(line.strip().startswith(f"image: pykbroker # was: {was}") for line in images)

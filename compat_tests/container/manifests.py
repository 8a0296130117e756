"""The Kubernetes example in docker/, and its pods as services."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from compat_tests.container.compose_files import DOCKER, ServiceFile

FILE = DOCKER / "kubernetes" / "pykbroker.yaml"


@cache
def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(FILE.read_text()))


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [each for each in documents() if each["kind"] == kind]


def stateful_set() -> dict[str, Any]:
    (found,) = of_kind("StatefulSet")
    return found


def container() -> dict[str, Any]:
    (found,) = stateful_set()["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def pods() -> list[ServiceFile]:
    """Each pod as what it is run with: Kubernetes names it by its number, and puts $(POD_NAME) into other values."""
    name, spec = stateful_set()["metadata"]["name"], stateful_set()["spec"]
    return [_pod(f"{name}-{number}", spec["serviceName"]) for number in range(spec["replicas"])]


def _pod(name: str, service: str) -> ServiceFile:
    security = stateful_set()["spec"]["template"]["spec"]["securityContext"]
    given = {each["name"]: each.get("value", name) for each in container()["env"]}
    return ServiceFile(
        name,
        container()["image"],
        {key: text.replace("$(POD_NAME)", name) for key, text in given.items()},
        tuple(container().get("command", [])),
        {each["mountPath"]: each["name"] for each in container()["volumeMounts"] if each["mountPath"] != "/tmp"},
        name,
        tuple(container()["readinessProbe"]["exec"]["command"]),
        user=f"{security['runAsUser']}:{security['runAsGroup']}",
        also_named=(f"{name}.{service}",),
    )

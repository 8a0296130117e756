"""What `make test` does about programs that are missing, on machines with and without the right to install them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "compat_tests" / "install-system-packages.sh"
ROOT_USER, SOMEBODY = 0, 1000


class Machine:
    """A PATH with nothing on it but what a test puts there."""

    def __init__(self, directory: Path, user: int) -> None:
        self.bin = directory / "bin"
        self.bin.mkdir()
        self.calls = directory / "calls"
        self.program("id", f"echo {user}")

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def apt_get(self, exit_code: int = 0) -> None:
        self.program("apt-get", f'echo "$@" >> {self.calls}; exit {exit_code}')

    def installed(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def install(self, *names: str) -> subprocess.CompletedProcess[str]:
        bash = shutil.which("bash")
        assert bash is not None
        environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
        return subprocess.run(
            [bash, SCRIPT, *names],
            env=environment | {"PATH": str(self.bin)},
            capture_output=True,
            text=True,
            timeout=180,
            check=True,
        )


@pytest.mark.parametrize(("user", "has_apt_get"), [(SOMEBODY, True), (SOMEBODY, False), (ROOT_USER, False)])
def test_without_the_right_to_install_one_line_says_what_is_left_out(
    tmp_path: Path, user: int, has_apt_get: bool
) -> None:
    machine = Machine(tmp_path, user)
    if has_apt_get:
        machine.apt_get()
    done = machine.install("java", "kcat")
    java, kcat = done.stderr.splitlines()
    assert java.startswith("java is missing")
    assert "leaving out the tests against Apache Kafka and of Spark" in java
    assert kcat.startswith("kcat is missing")
    assert machine.installed() == []


def test_a_command_is_installed_with_the_package_that_has_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, ROOT_USER)
    machine.apt_get()
    machine.install("ip", "iptables")
    assert machine.installed()[-1].endswith(" iproute2 iptables")


def test_root_installs_what_is_missing_and_nothing_else(tmp_path: Path) -> None:
    machine = Machine(tmp_path, ROOT_USER)
    machine.apt_get()
    machine.program("kcat", "exit 0")
    machine.program("java", "echo 'openjdk version \"11.0.2\"' >&2")
    assert machine.install("java", "kcat").stderr == ""
    update, install = machine.installed()
    assert update.startswith("update")
    assert install.split()[-1] == "openjdk-17-jre-headless"
    assert "kcat" not in install


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.1"])
def test_nothing_is_installed_where_everything_is_there(tmp_path: Path, version: str) -> None:
    machine = Machine(tmp_path, ROOT_USER)
    machine.apt_get()
    machine.program("java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")
    done = machine.install("java")
    assert (done.stdout, done.stderr, machine.installed()) == ("", "", [])


def test_an_installation_that_fails_leaves_tests_out_and_does_not_end_the_run(tmp_path: Path) -> None:
    machine = Machine(tmp_path, ROOT_USER)
    machine.apt_get(exit_code=100)
    assert machine.install("kcat").stderr == "apt-get cannot install kcat: leaving out the tests that need it\n"


def test_the_compiler_for_apache_kafkas_own_tests_comes_with_a_jdk(tmp_path: Path) -> None:
    machine = Machine(tmp_path, ROOT_USER)
    machine.apt_get()
    machine.program("java", "echo 'openjdk version \"17.0.15\"' >&2")
    machine.install("java", "javac")
    assert machine.installed()[-1].split()[-1] == "openjdk-17-jdk-headless"

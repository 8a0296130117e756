"""Services that run beside each other in namespaces of networks, as an engine of containers would run them.

A service has a root directory, a network and volumes of its own. Named volumes begin as Docker's do: with the owner,
the mode and the content that the image has at that place.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from compat_tests.chaos.network import Network
from compat_tests.container.buildah import IMAGE, Buildah
from compat_tests.container.compose_files import DOCKER, OUR_IMAGE, ServiceFile, services

DEADLINE_S = 60
LOCALHOST = {"localhost": "127.0.0.1"}


@dataclass
class Service:
    """One service: how commands are run in its place. enter: the command that takes others into its network."""

    name: str
    buildah: Buildah
    container: str
    enter: Sequence[str]
    environment: Mapping[str, str]
    volumes: Mapping[str, Path]
    hostname: str | None
    user: str | None
    health: Sequence[str]
    log: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def command(self, *command: str) -> list[str]:
        run = self.buildah.running(
            self.container,
            *command,
            environment=self.environment,
            volumes=self.volumes,
            user=self.user,
            hostname=self.hostname,
        )
        return [*self.enter, *run]

    def start(self, *command: str) -> None:
        with self.log.open("wb") as log:
            self.processes.append(
                subprocess.Popen(self.command(*command), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            )

    def run(self, *command: str, stdin: str = "") -> str:
        """What a command in the service's place prints; it must end well."""
        done = subprocess.run(
            self.command(*command), input=stdin, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert done.returncode == 0, f"{self.name}: {command}\n{done.stdout}\n{done.stderr}\n{self.log.read_text()}"
        return done.stdout

    @property
    def runs(self) -> bool:
        return all(process.poll() is None for process in self.processes)

    def is_healthy(self) -> bool:
        assert self.runs, f"{self.name} has ended:\n{self.log.read_text()}"
        done = subprocess.run(self.command(*self.health), capture_output=True, timeout=DEADLINE_S, check=False)
        return done.returncode == 0

    def wait_until_healthy(self) -> None:
        end_s = time.monotonic() + DEADLINE_S
        while not self.is_healthy():
            assert time.monotonic() < end_s, f"{self.name} is not healthy:\n{self.log.read_text()}"
            time.sleep(0.05)

    def stop(self) -> list[int]:
        """End as an engine does, by SIGTERM to the node; returns the exit codes."""
        for process in self.processes if self.runs else ():
            for child in psutil.Process(process.pid).children(recursive=True):
                if not child.children():
                    os.kill(child.pid, signal.SIGTERM)
        return [process.wait(DEADLINE_S) for process in self.processes]


class World:
    """Root directories of the image, and networks, for three services at a time. directory: for their volumes."""

    def __init__(self, storage: Path, directory: Path, network: Network) -> None:
        self.buildah = Buildah(storage, storage.name)
        self.directory = directory
        self._network = network
        self._image = json.loads(self.buildah("inspect", "--type", "image", IMAGE))["Docker"]["config"]
        self._containers = [self.buildah.container() for _ in network.namespaces]
        # The machine's file in this mount namespace, which buildah copies into containers.
        self._hosts = directory / "hosts"
        self._hosts.touch()
        subprocess.run(["mount", "--bind", str(self._hosts), "/etc/hosts"], check=True)
        self.root = Path(self.buildah("mount", self._containers[0]))

    def close(self) -> None:
        self.buildah("rm", *self._containers)

    def service(self, number: int, file: ServiceFile) -> Service:
        """The service with this number."""
        place = self.directory / file.name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / "log").touch()
        temporary = place / "tmp"
        temporary.mkdir()
        temporary.chmod(0o1777)
        volumes = {"/tmp": temporary}
        for at, source in file.volumes.items():
            volumes[at] = DOCKER / source if source.startswith(".") else self._volume(place / source, at)
        return Service(
            file.name,
            self.buildah,
            self._containers[number - 1],
            self._network.namespaces[number].enter,
            file.environment,
            volumes,
            file.hostname,
            file.user,
            file.health or self._image["Healthcheck"]["Test"][1:],
            place / "log",
        )

    def default_command(self) -> list[str]:
        return [*(self._image["Entrypoint"] or []), *self._image["Cmd"]]

    @contextmanager
    def composed(self, name: str) -> Iterator[dict[str, Service]]:
        """The services of a compose file with our image: those that serve are healthy, others have ended well."""
        with self.together([each for each in services(name) if each.image == OUR_IMAGE]) as running:
            yield running

    @contextmanager
    def together(self, files: Sequence[ServiceFile]) -> Iterator[dict[str, Service]]:
        """The same of services, each of which is known to the others by its names."""
        places = self._network.places
        names = {name: places[number].host for number, file in enumerate(files) for name in file.names}
        self._hosts.write_text("".join(f"{address} {name}\n" for name, address in (names | LOCALHOST).items()))
        running = {file.name: self.service(number, file) for number, file in enumerate(files, 1)}
        try:
            for file in files:
                if not file.ends:
                    running[file.name].start(*(file.command or self.default_command()))
            for file in files:
                if not file.ends:
                    running[file.name].wait_until_healthy()
            for file in files:
                if file.ends:
                    running[file.name].run(*file.command)
            yield running
            for each in running.values():
                assert set(each.stop()) <= {0}, each.log.read_text()
        finally:
            for each in running.values():
                each.stop()

    def _volume(self, path: Path, at: str) -> Path:
        in_image = self.root / at.lstrip("/")
        if in_image.is_dir():
            subprocess.run(["cp", "-a", str(in_image), str(path)], check=True)
        else:
            path.mkdir()
        return path


@contextmanager
def world(storage: Path, directory: Path) -> Iterator[World]:
    """A world in the namespaces that this process is in, which must be new ones."""
    with Network(3) as network:
        made = World(storage, directory, network)
        try:
            yield made
        finally:
            made.close()
            shutil.rmtree(directory, ignore_errors=True)

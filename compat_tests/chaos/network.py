"""A network of namespaces: each node has one with a cable to a bridge, in the namespace of whoever makes it.

That one is to be a namespace of its own, too (IN_NEW_NAMESPACES). Nothing has a name outside: a namespace lives as long
as the process that holds it, which ends with this one.
"""

from __future__ import annotations

import subprocess
from types import TracebackType
from typing import Self

from compat_tests.brokers import Place

CLIENTS = 0
"""Where the others have their node ids."""
BROKER_PORT, CONTROLLER_PORT = 9092, 9093

IN_NEW_NAMESPACES = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"),
)
"""A command behind this runs in namespaces of its own; it ends with whoever started it, as all do that it started."""

_NETWORK = "10.77.0"
_BRIDGE = "bridge0"
_CLIENTS_HOST = f"{_NETWORK}.254"


def why_there_are_no_namespaces() -> str | None:
    """Why tests with networks are left out, in one line."""
    script = (
        f"ip link add {_BRIDGE} type bridge && ip link add cable0 type veth peer name cable1 && iptables -w -S INPUT"
    )
    try:
        subprocess.run([*IN_NEW_NAMESPACES, "sh", "-c", script], capture_output=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return "needs root, namespaces of networks and processes, ip (Debian package iproute2) and iptables"
    return None


class Namespace:
    """enter: the command that others are appended to so that they run in it."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        self._holder.stdout.readline()  # it is in the new one now

    @property
    def pid(self) -> int:
        return self._holder.pid

    @property
    def enter(self) -> tuple[str, ...]:
        return ("nsenter", "-t", str(self.pid), "-n")

    def close(self) -> None:
        self._holder.communicate()  # its input ends, and so does it


class Network:
    """A context manager. Nodes count from 1; CLIENTS stands for all processes of this namespace."""

    def __init__(self, nodes: int) -> None:
        self.namespaces = {number: Namespace() for number in range(1, nodes + 1)}
        self.cuts: set[tuple[int, int]] = set()
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    @property
    def places(self) -> list[Place]:
        return [
            Place(_host(number), BROKER_PORT, CONTROLLER_PORT, namespace.enter)
            for number, namespace in self.namespaces.items()
        ]

    def cut(self, sender: int, receiver: int) -> None:
        """What one sends does not arrive at the other any more; the other way is not touched."""
        if (sender, receiver) not in self.cuts:
            self.cuts.add((sender, receiver))
            self._run_at(receiver, "iptables", "-w", "-A", "INPUT", "-s", _host(sender), "-j", "DROP")

    def separate(self, one: int, other: int) -> None:
        """Both ways."""
        self.cut(one, other)
        self.cut(other, one)

    def heal(self) -> None:
        for receiver in {receiver for _, receiver in self.cuts}:
            self._run_at(receiver, "iptables", "-w", "-F", "INPUT")
        self.cuts.clear()

    def close(self) -> None:
        for namespace in self.namespaces.values():
            namespace.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self) -> None:
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", _BRIDGE, "type", "bridge")
        _run("ip", "addr", "add", f"{_CLIENTS_HOST}/24", "dev", _BRIDGE)
        _run("ip", "link", "set", _BRIDGE, "up")
        for number, namespace in self.namespaces.items():
            cable = f"node{number}"
            _run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(namespace.pid))
            _run("ip", "link", "set", cable, "master", _BRIDGE, "up")
            self._run_at(number, "ip", "addr", "add", f"{_host(number)}/24", "dev", "eth0")
            self._run_at(number, "ip", "link", "set", "lo", "up")
            self._run_at(number, "ip", "link", "set", "eth0", "up")

    def _run_at(self, number: int, *command: str) -> None:
        _run(*(() if number == CLIENTS else self.namespaces[number].enter), *command)


def _host(number: int) -> str:
    return _CLIENTS_HOST if number == CLIENTS else f"{_NETWORK}.{number}"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"

"""The network of a chaos run: each cut stops what it says, one way, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .network import CLIENTS, IN_NEW_NAMESPACES, Network

pytestmark = pytest.mark.netns

_SINK = """
import socket, sys
sink = socket.create_server(("0.0.0.0", 7))
print(flush=True)
while True:
    sink.accept()[0].close()
"""
_CALL = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 7), timeout=0.5).close()
except TimeoutError:
    sys.exit(1)
"""


def _reached(network: Network) -> set[tuple[int, int]]:
    """Who gets a connection to whom; a connection takes both ways."""
    return {
        (caller, callee)
        for caller in (CLIENTS, *network.namespaces)
        for callee in network.namespaces
        if caller != callee and _calls(network, caller, callee)
    }


def _calls(network: Network, caller: int, callee: int) -> bool:
    enter = () if caller == CLIENTS else network.namespaces[caller].enter
    command = [*enter, sys.executable, "-c", _CALL, network.places[callee - 1].host]
    return subprocess.run(command, timeout=30, check=False).returncode == 0


def _received(network: Network, sender: int, receiver: int) -> bool:
    """One way only: whether a datagram arrives."""
    listen = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('0.0.0.0', 9)); s.settimeout(1)\n"
    listener = subprocess.Popen(
        [*network.namespaces[receiver].enter, sys.executable, "-c", f"{listen}print(flush=True); s.recv(1)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert listener.stdout is not None
    listener.stdout.readline()
    send = "import socket, sys; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', (sys.argv[1], 9))"
    place = network.places[receiver - 1].host
    subprocess.run([*network.namespaces[sender].enter, sys.executable, "-c", send, place], timeout=30, check=True)
    listener.communicate()
    return listener.returncode == 0


def main() -> None:
    """What the test runs in a namespace of its own."""
    with Network(3) as network:
        sinks = [
            subprocess.Popen([*each.enter, sys.executable, "-c", _SINK], stdout=subprocess.PIPE)
            for each in network.namespaces.values()
        ]
        for sink in sinks:
            assert sink.stdout is not None
            sink.stdout.readline()
        try:
            told: dict[str, object] = {"whole": sorted(_reached(network))}
            network.cut(1, 2)
            told["one way"] = [_received(network, 1, 2), _received(network, 2, 1), _received(network, 1, 3)]
            network.heal()
            network.separate(1, CLIENTS)
            network.separate(1, 3)
            told["separated"] = sorted(_reached(network))
            network.heal()
            told["healed"] = sorted(_reached(network))
        finally:
            for sink in sinks:
                sink.kill()
                sink.communicate()
    sys.stdout.write(json.dumps(told))


def test_cuts_stop_what_they_say_and_heal() -> None:
    command = [*IN_NEW_NAMESPACES, sys.executable, "-c", f"from {__name__} import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    everybody = [[caller, callee] for caller in range(4) for callee in range(1, 4) if caller != callee]
    assert told["whole"] == told["healed"] == everybody
    assert told["one way"] == [False, True, True]
    assert told["separated"] == [pair for pair in everybody if set(pair) not in ({0, 1}, {1, 3})]

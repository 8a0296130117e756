"""`python -m compat_tests.tls.starts FILE...`: one start of pykbroker with each of the properties files.

Prints a line of JSON for each: the exit code, or null where it serves, and what the start said. The processes are
forked from one that has imported what they need, so that a start that is refused costs a few milliseconds.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path

IMPORTED = (
    "pykbroker.api",
    "pykbroker.cli.start",
    "pykbroker.security.tls.stores",
    "pykbroker.server.network.socket_transport",
    "pykbroker.server.node.node",
)
READY = b"pykbroker ready: "
POLL_INTERVAL_S = 0.005


def start(properties: Path) -> tuple[int | None, str]:
    said = properties.with_suffix(".said")
    process = os.fork()
    if process == 0:
        _become_pykbroker(properties, said)
    while (ended := os.waitpid(process, os.WNOHANG))[0] == 0:
        if said.exists() and READY in said.read_bytes():
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return None, said.read_text()
        time.sleep(POLL_INTERVAL_S)
    return os.waitstatus_to_exitcode(ended[1]), said.read_text()


def _become_pykbroker(properties: Path, said: Path) -> None:
    from pykbroker.cli.main import main

    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = 0
    try:
        main(["start", str(properties)])
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    for argument in sys.argv[1:]:
        print(json.dumps(start(Path(argument))), flush=True)  # noqa: T201

"""`python -m compat_tests.hostile.load.attacker NAME HOST PORT`: one attack, until standard input closes.

The attacker prints READY when it has built its requests, and begins.
"""

from __future__ import annotations

import sys

import trio

from .attacks import Run
from .every_attack import ATTACKS

READY = b"ready\n"


async def attack(run: Run, address: tuple[str, int]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, address)
        await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
        nursery.cancel_scope.cancel()


def main(name: str, host: str, port: str) -> None:
    run = ATTACKS[name].prepare()
    sys.stdout.buffer.write(READY)
    sys.stdout.flush()
    trio.run(attack, run, (host, int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])

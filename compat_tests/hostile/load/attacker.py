"""`python -m compat_tests.hostile.load.attacker NAME HOST PORT`: one attack, until standard input closes."""

from __future__ import annotations

import sys

import trio

from .attacks import ATTACKS


async def attack(name: str, address: tuple[str, int]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ATTACKS[name].run, address)
        await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(attack, sys.argv[1], (sys.argv[2], int(sys.argv[3])))

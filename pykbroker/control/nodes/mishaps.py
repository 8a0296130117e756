"""The mishaps of a node: it is paused, cut off, or loses its power.

- Paused, as by SIGSTOP: its connections stay, new ones are taken by the system, and nobody is answered. Others take it
  for slow, and then for gone.
- Cut off from nodes, from clients or from both, as where packets are dropped. It goes on by itself.
- Without power it ends at once, and its disk loses what was not flushed.

The order of calls is checked: what makes no sense is BadOrder, and changes nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

import trio

from pykbroker.server.node.environment import Environment
from pykbroker.server.node.node import Node

from .flushed_disk import FlushedDisk
from .gate import Gate, Side
from .gated_network import GatedNetwork, Peers

EVERYBODY: Final = "all"
_SIDES: Final = {EVERYBODY: frozenset(Side), "nodes": frozenset({Side.NODES}), "clients": frozenset({Side.CLIENTS})}


class BadOrder(ValueError):
    """A mishap does not befall a node that is as this one is now."""


class UnknownSide(ValueError):
    """A side of this name is not at the other end of any connection."""


class Mishaps:
    """The mishaps of one node, through all its starts.

    node: while it runs. peers: those of the node's cluster in this process. end: ends the node as a killed process
    ends; None where nobody can. has_process: the node is all that its process is for.
    """

    def __init__(self, node: Callable[[], Node | None]) -> None:
        self.peers = Peers()
        self.end: Callable[[], Awaitable[None]] | None = None
        self.has_process = False
        self.is_paused = False
        self._node = node
        self._gate = Gate()
        self._cut_off: frozenset[Side] = frozenset()
        self._disk: FlushedDisk | None = None
        self._network: GatedNetwork | None = None

    def equip(self, environment: Environment) -> Environment:
        """Return the environment for a start, with the network and the disk in it that this is in the way of."""
        if self._disk is None or self._disk.inner is not environment.disk:
            self._disk = FlushedDisk(environment.disk)
        self._network = GatedNetwork(environment.network, self._gate, self.peers)
        return replace(environment, disk=self._disk, network=self._network)

    @property
    def disk(self) -> FlushedDisk:
        """The disk of a node that was equipped."""
        assert self._disk is not None
        return self._disk

    @property
    def is_running(self) -> bool:
        return self._node() is not None

    @property
    def answers(self) -> bool:
        """Tell whether the node runs, and everybody hears of it."""
        return self.is_running and not self.is_paused and not self._cut_off

    @property
    def is_cut_off(self) -> bool:
        return bool(self._cut_off)

    @property
    def cut_off_from(self) -> list[str]:
        """Return who the node is cut off from, by name."""
        return sorted(side.value for side in self._cut_off)

    @property
    def silence(self) -> str:
        """Return why clients are not answered; "" where they are, or the node does not run."""
        if self.is_paused:
            return "is paused"
        return "is cut off from clients" if Side.CLIENTS in self._cut_off and self.is_running else ""

    @property
    def unflushed_bytes(self) -> int:
        """Return how many bytes a power cut would take now."""
        return 0 if self._disk is None else self._disk.unflushed_bytes

    def pause(self) -> None:
        """Answer nobody, until `resume`. Raises BadOrder."""
        self._check_runs("paused")
        if self.is_paused:
            raise BadOrder("the node is paused already")
        self.is_paused = True
        self._set_gate()

    def resume(self) -> None:
        """Go on where `pause` has stopped. Raises BadOrder."""
        if not self.is_paused:
            raise BadOrder("the node is not paused, so it cannot be resumed")
        self.is_paused = False
        self._set_gate()

    def cut_off(self, side: str = EVERYBODY) -> None:
        """Cut the node off from `nodes`, `clients` or `all`, until `restore`; a second call adds to it. Raises
        BadOrder, UnknownSide.
        """
        sides = _sides_of(side)
        if sides <= self._cut_off:
            raise BadOrder(f"the node is cut off from {' and '.join(self.cut_off_from)} already")
        self._cut_off |= sides
        self._set_gate()

    def restore(self) -> None:
        """Restore the network. Raises BadOrder."""
        if not self._cut_off:
            raise BadOrder("the node is not cut off, so there is nothing to restore")
        self._cut_off = frozenset()
        self._set_gate()

    def kill_process(self) -> None:
        """End the process of a node that has one to itself, as `kill -9` does."""
        if self.has_process:
            os.kill(os.getpid(), signal.SIGKILL)

    async def crash(self, *, lose_unflushed: bool = True) -> int:
        """End the node as by a power cut, or as by `kill -9`, and return how many bytes were lost. Raises BadOrder."""
        self._check_runs("crashed")
        if self.end is None:
            raise BadOrder("this node ends with its process, which nobody here can kill")
        lost_bytes = 0
        with trio.CancelScope(shield=True):  # no half of a crash, whoever has left meanwhile
            await self.end()
            if lose_unflushed and self._disk is not None:
                lost_bytes = await trio.to_thread.run_sync(self._disk.cut_power)
        return lost_bytes

    def check_start(self, *, is_alone: bool) -> None:
        """Raises BadOrder where a start would wait for nodes that the node is cut off from."""
        if Side.NODES in self._cut_off and not is_alone:
            raise BadOrder("the node is cut off from the others, without whom it does not start: restore it first")

    def check_stop(self) -> None:
        """Raises BadOrder where the node does not hear that it is to stop."""
        if self.is_paused:
            raise BadOrder("the node is paused, and does not hear that it is to stop: resume it first, or kill it")

    def before_end(self) -> None:
        """Let those whom the node is cut off from not hear that it ends. Called before it does, by whom ever."""
        self.is_paused = False
        if self._network is not None:
            self._network.outlive()
        self._set_gate()

    def end_all(self) -> None:
        """End what befalls the node, which is about to be shut down for good."""
        self.is_paused = False
        self._cut_off = frozenset()
        self._set_gate()

    def _set_gate(self) -> None:
        self._gate.close_to(frozenset(Side) if self.is_paused else self._cut_off)

    def _check_runs(self, what: str) -> None:
        if self._node() is None:
            raise BadOrder(f"the node does not run, so it cannot be {what}")


def _sides_of(name: str) -> frozenset[Side]:
    if name in _SIDES:
        return _SIDES[name]
    shown = ascii(str(name)[:64])[1:-1]
    close = get_close_matches(str(name)[:64], _SIDES, n=1)
    hint = f"did you mean {close[0]}?" if close else "there are nodes, clients and all"
    raise UnknownSide(f"a node is not cut off from {shown}; {hint}")

"""Raft's main tests: each transcript is a list of commands with what the node answers.

A block is commands, a line `----`, and the answer up to the next empty line. With PYKBROKER_REWRITE=1 the answers are
written anew; read the diff before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from pykbroker.raft.election_state import ElectionState
from pykbroker.raft.events import Ready
from pykbroker.raft.node import NotLeader, RaftNode
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.voters import Voter, VoterSet

from .memory_log import Batch, MemoryLog

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


class Interpreter:
    """Runs one transcript's commands against one node."""

    def __init__(self) -> None:
        self.node: RaftNode | None = None
        self.handed_out: Ready | None = None

    def run(self, command: str) -> list[str]:
        name, *arguments = command.split()
        if name == "new":
            return self.new(dict(argument.split("=") for argument in arguments))
        assert self.node is not None, "a transcript starts with `new`"
        match name:
            case "tick":
                self.node.tick(int(arguments[0]))
                return []
            case "propose":
                return self.propose(arguments)
            case "ready":
                return self.ready()
            case "advance":
                return self.advance(int(arguments[0]))
            case "status":
                node = self.node
                return [
                    f"{node.role.name} epoch={node.epoch} leader={node.leader_id} "
                    f"end={node.log_end_offset} high_watermark={node.high_watermark}"
                ]
        raise AssertionError(f"unknown command {command!r}")

    def new(self, arguments: dict[str, str]) -> list[str]:
        voters = VoterSet([Voter(1, "localhost", 9093)])
        election = ElectionState(int(arguments.get("epoch", "0")))
        end_offset = int(arguments.get("end", "0"))
        batches = [Batch(0, int(arguments.get("last_epoch", "0")), ("",) * end_offset)] if end_offset else []
        self.node = RaftNode(LocalReplica(1), voters, election, MemoryLog(batches), rng=Random(1))
        return []

    def propose(self, records: list[str]) -> list[str]:
        assert self.node is not None
        try:
            append = self.node.propose(records, len(records))
        except NotLeader as error:
            return [str(error)]
        return [f"base_offset={append.base_offset}"]

    def ready(self) -> list[str]:
        assert self.node is not None
        self.handed_out = self.node.ready()
        lines = []
        if self.handed_out.election is not None:
            lines.append(f"election {self.handed_out.election.to_json([1]).decode()}")
        for append in self.handed_out.appends:
            lines.append(f"append offset={append.base_offset} epoch={append.epoch} {append.payload}")
        return lines or ["nothing"]

    def advance(self, durable_end_offset: int) -> list[str]:
        assert self.node is not None
        assert self.handed_out is not None
        election = self.handed_out.election
        high_watermark = self.node.advance(election=election, durable_end_offset=durable_end_offset)
        return [f"high_watermark={high_watermark}"]


def play(transcript: str) -> str:
    """The transcript with every answer as the node gives it now."""
    interpreter = Interpreter()
    blocks = []
    for block in transcript.strip().split("\n\n"):
        commands = block.split("\n----")[0].split("\n")
        answers = [line for command in commands if not command.startswith("#") for line in interpreter.run(command)]
        blocks.append("\n".join([*commands, "----", *answers]))
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_node_answers_as_the_transcript_says(path: Path) -> None:
    expected = path.read_text()
    actual = play(expected)
    if os.environ.get("PYKBROKER_REWRITE"):
        path.write_text(actual)
    assert actual == expected

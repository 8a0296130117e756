"""All operations of a broker's control. Nothing is imported here of what does them."""

from __future__ import annotations

from typing import Final

from .operation import Kind, Operation, Parameter

_CONTROL: Final = "pykbroker.control"
_DOORS: Final = f"{_CONTROL}.http.doors"
_FAULTS: Final = f"{_CONTROL}.faults.requests"

_SINCE: Final = Parameter("since", "From behind the entry with this number on.", Kind.WHOLE)
_MOST: Final = Parameter("most", "So many at most.", Kind.WHOLE)
_API: Final = Parameter("api", "Produce, Fetch, …")
_CLIENT_ID: Final = Parameter("client_id", "The client's id.")
_TOPIC: Final = Parameter("topic", "The topic's name.")
_NAME: Final = Parameter("name", "The name of the fault.")
_SCOPES: Final = "retention, tombstones, transactions, producers, offsets, tokens, sessions or all."
_TIME: Final = "500ms, 2s, 5m"

_NODE: Final = (
    Operation(
        "node facts", "GET", "/node", "Tell which node this is, and where it serves.", f"{_CONTROL}.node_facts:describe"
    ),
    Operation("node state", "GET", "/node/state", "Tell whether it is paused or cut off.", f"{_DOORS}:node_state"),
    Operation(
        "node pause", "POST", "/node/pause", "Stop it where it stands: nobody is answered.", f"{_DOORS}:node_pause"
    ),
    Operation("node resume", "POST", "/node/resume", "Let a paused node go on.", f"{_DOORS}:node_resume"),
    Operation(
        "node cut-off",
        "POST",
        "/node/cut-off",
        "Cut it off: what is sent waits, connections stay.",
        f"{_DOORS}:node_cut_off",
        [Parameter("from", "nodes, clients or all.")],
    ),
    Operation(
        "node crash",
        "POST",
        "/node/crash",
        "End its process as a power cut, or as kill -9 does.",
        f"{_DOORS}:node_crash",
        [Parameter("lose_unflushed", "What was not flushed is lost, too, unless this says no.", Kind.FLAG)],
    ),
    Operation("node restore", "POST", "/node/restore", "Restore its network.", f"{_DOORS}:node_restore"),
    Operation(
        "clients seeking",
        "GET",
        "/clients/seeking",
        "List clients that asked where the broker is, and never came there.",
        f"{_CONTROL}.node_facts:seeking_clients",
    ),
)

_CLOCK: Final = (
    Operation(
        "clock advance",
        "POST",
        "/clock/advance",
        "Let time pass for what a scope names; it has happened at the answer.",
        f"{_DOORS}:clock_advance",
        [
            Parameter("duration", "250ms, 1h30m, 7d.", is_required=True),
            Parameter(
                "scope",
                _SCOPES,
                is_required=True,
            ),
        ],
    ),
    Operation(
        "clock advanced",
        "GET",
        "/clock",
        "Tell by how much each clock was advanced.",
        f"{_DOORS}:clock_advanced",
        [Parameter("scope", "One of them.")],
    ),
)

_PICKS: Final = (
    Parameter("nth", "The request with this number alone, from 1.", Kind.WHOLE),
    Parameter("skip", "Leave so many alone first.", Kind.WHOLE),
    Parameter("first", "So many alone, from the first on.", Kind.WHOLE),
    Parameter("times", "So many at most.", Kind.WHOLE),
    Parameter("every", "One in so many.", Kind.WHOLE),
    Parameter("chance", "By chance, 0.1 for one in ten.", Kind.NUMBER),
)

_FAULT_OPERATIONS: Final = (
    Operation(
        "faults add",
        "POST",
        "/faults",
        "Add a fault between the broker and its clients.",
        f"{_FAULTS}:add",
        [
            _API,
            Parameter("client_id", "A pattern, with * and ?."),
            Parameter("topic", "A pattern, with * and ?."),
            *_PICKS,
            Parameter("error", "The error's name in Kafka."),
            Parameter("when", "With an error: before or after the broker has carried the request out."),
            Parameter("delay", f"Before the broker has the request: {_TIME}.", Kind.ANY),
            Parameter("hold", f"The answer waits so long: {_TIME}.", Kind.ANY),
            Parameter("drop", "Close the connection without an answer: before or after it is carried out."),
            Parameter("cut", "Close it in the middle of the answer.", Kind.FLAG),
            Parameter("until", "Hold it until this is released, or has happened.", Kind.ANY),
            Parameter("held", "With until: the request, or the answer."),
            Parameter("timeout", f"With until: so long at most, {_TIME}.", Kind.ANY),
            _NAME,
        ],
    ),
    Operation(
        "faults add-disk",
        "POST",
        "/faults/disk",
        "Add a fault of the disk.",
        f"{_FAULTS}:add_disk",
        [
            Parameter("error", "ENOSPC, EIO, …", is_required=True),
            Parameter("op", "read, write, …"),
            Parameter("path", "A pattern of files or directories, with * and ?."),
            Parameter("topic", "A pattern, with * and ?."),
            *_PICKS,
            _NAME,
        ],
    ),
    Operation(
        "faults list", "GET", "/faults", "Tell which faults there are, and what they did.", f"{_FAULTS}:list_all"
    ),
    Operation(
        "faults load",
        "POST",
        "/faults/script",
        "Add the faults of a script.",
        f"{_FAULTS}:load",
        [Parameter("toml", "The script.", Kind.FILE, is_required=True)],
    ),
    Operation(
        "faults seed",
        "POST",
        "/faults/seed",
        "Set the seed of all chances.",
        f"{_FAULTS}:set_seed",
        [Parameter("seed", "A whole number.", Kind.WHOLE, is_required=True)],
    ),
    Operation(
        "faults wait",
        "POST",
        "/faults/wait/{name}",
        "Wait until a fault has come about.",
        f"{_FAULTS}:wait",
        [
            Parameter("name", "The name of the fault.", is_required=True),
            Parameter("times", "So often, in all [1].", Kind.WHOLE),
            Parameter("timeout", "So long at most, a minute or less [10s].", Kind.ANY),
        ],
    ),
    Operation(
        "faults release",
        "POST",
        "/faults/release/{name}",
        "Let go what is held until this name is released.",
        f"{_FAULTS}:release",
        [Parameter("name", "The name that is waited for.", is_required=True)],
    ),
    Operation(
        "faults remove",
        "DELETE",
        "/faults/{name}",
        "Take a fault out.",
        f"{_FAULTS}:remove",
        [Parameter("name", "The name of the fault.", is_required=True)],
    ),
    Operation("faults clear", "DELETE", "/faults", "Take all faults out.", f"{_FAULTS}:clear"),
)

_JOURNAL: Final = (
    Operation("journal status", "GET", "/journal", "Tell how much is recorded.", f"{_DOORS}:journal_status"),
    Operation(
        "journal requests",
        "GET",
        "/journal/requests",
        "List requests and their answers, decoded.",
        f"{_DOORS}:journal_requests",
        [
            _API,
            _CLIENT_ID,
            _TOPIC,
            Parameter("error", "An error in the answer."),
            _SINCE,
            _MOST,
        ],
    ),
    Operation(
        "journal events",
        "GET",
        "/journal/events",
        "List what coordinators did, and why.",
        f"{_DOORS}:journal_events",
        [_SINCE, _MOST],
    ),
    Operation(
        "journal lines",
        "GET",
        "/journal/lines",
        "All of it as JSON lines.",
        f"{_DOORS}:journal_lines",
        [_SINCE],
        is_stream=True,
    ),
    Operation(
        "journal capture",
        "GET",
        "/journal/capture",
        "The requests and answers as a capture file, for Wireshark.",
        f"{_DOORS}:journal_capture",
        [_SINCE],
        is_stream=True,
    ),
    Operation("journal clear", "DELETE", "/journal", "Forget all of it.", f"{_DOORS}:journal_clear"),
)

_AUDIT: Final = (
    Operation("audit begin", "POST", "/audit", "Audit the clients from now on.", f"{_DOORS}:audit_begin"),
    Operation("audit findings", "GET", "/audit", "Tell what was found so far.", f"{_DOORS}:audit_look"),
    Operation("audit end", "DELETE", "/audit", "End it, and tell what was found.", f"{_DOORS}:audit_end"),
)

_WHY: Final = (
    Operation(
        "why group",
        "GET",
        "/why/group/{group}",
        "Why a group rebalances, waits or is empty.",
        f"{_DOORS}:why_group",
        [Parameter("group", "The group.", is_required=True)],
    ),
    Operation(
        "why consumer",
        "GET",
        "/why/consumer",
        "Why a consumer gets nothing, or no more.",
        f"{_DOORS}:why_consumer",
        [Parameter("group", "Its group."), _CLIENT_ID, _TOPIC, Parameter("partition", "The partition.", Kind.WHOLE)],
    ),
    Operation(
        "why lso",
        "GET",
        "/why/lso",
        "What holds the last stable offset of a partition.",
        f"{_DOORS}:why_lso",
        [
            Parameter("topic", "The topic's name.", is_required=True),
            Parameter("partition", "The partition.", Kind.WHOLE, is_required=True),
        ],
    ),
    Operation(
        "why throttle",
        "GET",
        "/why/throttle",
        "Which quotas apply to a client.",
        f"{_DOORS}:why_throttle",
        [_CLIENT_ID, Parameter("user", "A principal's name.")],
    ),
)

_SAVEPOINTS: Final = (
    Operation(
        "savepoint save",
        "POST",
        "/savepoint",
        "Save all that the node has, for start --savepoint.",
        f"{_DOORS}:savepoint_save",
        [Parameter("at", "As of the end of the journal's entry with this number.", Kind.WHOLE)],
        is_stream=True,
    ),
)

OPERATIONS: Final = (*_NODE, *_SAVEPOINTS, *_CLOCK, *_FAULT_OPERATIONS, *_JOURNAL, *_AUDIT, *_WHY)


def operation(command: str) -> Operation:
    """Return the operation of that command. Raises LookupError."""
    for each in OPERATIONS:
        if each.command == command:
            return each
    raise LookupError(command)

"""A broker process whose system calls strace writes down, and a reader that tells them to a `FileTrace`.

strace stops the process at each call that is traced, in all threads and child processes, and writes the calls in their
order: a call that others overtake stands there twice, where it began and where it returned. So a sync counts for what
was written before it began, and for a promise that was made after it had returned.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.storage.file_trace import Descriptors, FileTrace, RunningSync

_FILES = "open,openat,close,dup2,dup3,fcntl,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir"
_BYTES = "write,writev,pwrite64,pwritev,pwritev2,ftruncate,fallocate,truncate,fsync,fdatasync,syncfs"
_OTHERS = "sendto,sendmsg,clone,clone3,fork,vfork,execve"
_MOST_BYTES = 1 << 20
"""Of the bytes of a call. More than that no call of a test has; what is cut off would be found missing."""

_LINE = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)")
_RESULT = re.compile(r"(.*)\) += (-?\d+|0x[0-9a-f]+|\?)(?: (\w+))?.*")
_UNFINISHED = " <unfinished ...>"
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def why_nothing_can_be_traced() -> str | None:
    if shutil.which("strace") is None:
        return "needs strace (Debian package strace)"
    done = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return None if done.returncode == 0 else "needs ptrace, for strace"


def strace_command(output: Path) -> tuple[str, ...]:
    """What a command is appended to. strace ends when all that it traces has ended, and has written all of it then."""
    calls = f"trace={_FILES},{_BYTES},{_OTHERS}"
    options = ("-f", "-q", "--seccomp-bpf", "-xx", "-s", str(_MOST_BYTES), "-e", "signal=none", "-e", calls)
    return ("strace", *options, "-o", str(output))


def traced_pid(strace: int) -> int | None:
    """The process that strace has started, once there is one."""
    try:
        children = Path(f"/proc/{strace}/task/{strace}/children").read_text().split()
    except FileNotFoundError:
        return None
    return int(children[0]) if children else None


class SystemCall(NamedTuple):
    """A call, or one end of it. result: None where it begins; negative with the name of an `error`."""

    pid: int
    name: str
    arguments: str
    result: int | None
    error: str = ""


def system_calls(lines: Iterator[str]) -> Iterator[SystemCall]:
    """Each call twice: where it begins, and where it returns. One that never returned has no second."""
    begun: dict[int, str] = {}
    for line in lines:
        match = _LINE.fullmatch(line.rstrip("\n"))
        if match is None:
            continue
        pid, resumed, name, rest = int(match[1]), match[2], match[3], match[4]
        if name:
            if rest.endswith(_UNFINISHED):
                begun[pid] = rest.removesuffix(_UNFINISHED)
                yield SystemCall(pid, name, begun[pid], None)
                continue
            yield SystemCall(pid, name, rest, None)
        else:
            name, rest = resumed, begun.pop(pid, "") + rest
        ended = _RESULT.fullmatch(rest)
        if ended is not None and ended[2] != "?":
            yield SystemCall(pid, name, ended[1], int(ended[2], 0), ended[3] or "")


def strings(arguments: str) -> list[bytes]:
    return [bytes.fromhex(found.replace("\\x", "")) for found in _STRING.findall(arguments)]


class StraceReader:
    """Tells a `FileTrace` what strace has written. on_send: is told what goes to a socket, when that begins."""

    def __init__(self, trace: FileTrace, on_send: Callable[[bytes], None]) -> None:
        self._trace = trace
        self._on_send = on_send
        self._descriptors: dict[int, Descriptors] = {}
        """Of each process, by its threads' numbers."""
        self._forking: tuple[int, bool] | None = None
        self._syncs: dict[int, list[RunningSync]] = {}

    def read(self, output: Path) -> None:
        """All calls of a process and its children, from its first to its last."""
        self._descriptors.clear()
        self._syncs.clear()
        with output.open(errors="replace") as lines:
            for call in system_calls(lines):
                self._take(call)
        self._trace.process_died()

    def _of(self, pid: int) -> Descriptors:
        if pid not in self._descriptors:
            parent, is_thread = self._forking or (None, False)
            inherited: Descriptors = {} if parent is None else self._descriptors.get(parent, {})
            self._descriptors[pid] = inherited if is_thread else dict(inherited)
        return self._descriptors[pid]

    def _take(self, call: SystemCall) -> None:
        descriptors = self._of(call.pid)
        if call.name in ("clone", "clone3", "fork", "vfork"):
            if call.result is None:
                self._forking = call.pid, "CLONE_FILES" in call.arguments
        elif call.result is None:
            self._begin(call, descriptors)
        elif call.name in ("fsync", "fdatasync", "syncfs"):
            for running in self._syncs.pop(call.pid, []):
                self._trace.sync_ended(running, int(call.result < 0))
        elif call.result < 0:
            if call.error == "EBADF" and call.name != "fcntl":
                self._trace.misused(call.name, _number(call.arguments))
        else:
            self._end(call, call.result, descriptors)

    def _begin(self, call: SystemCall, descriptors: Descriptors) -> None:
        match call.name:
            case "fsync" | "fdatasync":
                running = self._trace.sync_begun(descriptors, _number(call.arguments))
                self._syncs[call.pid] = [] if running is None else [running]
            case "syncfs":
                is_traced = _number(call.arguments) in descriptors
                self._syncs[call.pid] = self._trace.volume_sync_begun() if is_traced else []
            case "sendto" | "sendmsg":
                self._on_send(b"".join(strings(call.arguments)))
            case "execve":
                descriptors.clear()  # all that is traced is closed there

    def _end(self, call: SystemCall, result: int, descriptors: Descriptors) -> None:
        arguments = call.arguments
        match call.name:
            case "open" | "openat":
                self._trace.opened(
                    descriptors,
                    result,
                    self._path(call, descriptors),
                    truncates="O_TRUNC" in arguments,
                    appends="O_APPEND" in arguments,
                )
            case "close":
                self._trace.closed(descriptors, _number(arguments))
            case "dup2" | "dup3":
                self._trace.closed(descriptors, result)
            case "fcntl" if "F_SETFL" in arguments:
                self._trace.set_append_mode(descriptors, _number(arguments), on="O_APPEND" in arguments)
            case "mkdir" | "mkdirat":
                self._trace.made_directory(self._path(call, descriptors))
            case "rename" | "renameat" | "renameat2":
                source, target = strings(arguments)
                self._trace.renamed(source.decode(), target.decode())
            case "unlink" | "unlinkat" | "rmdir":
                self._trace.removed(self._path(call, descriptors))
            case "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2":
                self._written(call, result, descriptors)
            case "ftruncate":
                self._trace.truncated(descriptors, _number(arguments), int(arguments.rsplit(",", 1)[1]))
            case "fallocate" | "truncate":
                assert not any(_number(arguments) == each for each in descriptors), f"nobody is known to call {call}"

    def _written(self, call: SystemCall, count: int, descriptors: Descriptors) -> None:
        if (descriptor := _number(call.arguments)) not in descriptors:
            return
        data = b"".join(strings(call.arguments))
        assert len(data) >= count, f"strace has cut off the bytes of a {call.name}"
        position = None
        if call.name in ("pwrite64", "pwritev"):
            position = int(call.arguments.rsplit(",", 1)[1])
        self._trace.written(descriptors, descriptor, data[:count], position)

    def _path(self, call: SystemCall, descriptors: Descriptors) -> str:
        path = strings(call.arguments)[0].decode()
        first = call.arguments.split(",", 1)[0]
        if first.isdigit() and not path.startswith("/") and (directory := descriptors.get(int(first))):
            return f"{directory.path}/{path}"
        return path


def _number(arguments: str) -> int:
    """The first argument, a descriptor."""
    first = re.split(r"[,)]", arguments, maxsplit=1)[0].strip()
    return int(first) if first.lstrip("-").isdigit() else -1

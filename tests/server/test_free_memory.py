"""What a thread has left in a heap of its own goes back to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest
import trio

from pykbroker.server.runtime.free_memory import LARGE_BLOCK_BYTES, give_back_free_memory, trimming
from pykbroker.server.runtime.threads import WorkerThreads


def test_free_memory_is_given_back_every_ten_seconds() -> None:
    slept: list[float] = []
    calls: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 4:
            scope.cancel()
        await trio.lowlevel.checkpoint()

    async def run() -> None:
        with scope:
            await give_back_free_memory(WorkerThreads(1), lambda: calls.append(sum(slept)), sleep)

    scope = trio.CancelScope()
    trio.run(run)
    assert calls == [10, 20, 30]


def test_where_the_c_library_has_nothing_to_call_nothing_is_waited_for() -> None:
    async def sleep(seconds: float) -> None:
        raise AssertionError

    trio.run(give_back_free_memory, WorkerThreads(1), None, sleep)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
def test_the_c_library_of_this_system_can_be_asked() -> None:
    trim = trimming()
    assert trim is not None
    assert trim() in (0, 1)  # whether there was something to give back


_MAPPED_BLOCKS = """
import ctypes
from pykbroker.server.runtime.free_memory import LARGE_BLOCK_BYTES, map_large_blocks

class MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd".split()]
    _fields_ += [(name, ctypes.c_size_t) for name in "usmblks fsmblks uordblks fordblks keepcost".split()]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = MallInfo
{setting}
largest = bytearray(8 * LARGE_BLOCK_BYTES)
del largest
before = mallinfo2().hblks
large = bytearray(2 * LARGE_BLOCK_BYTES)
print(mallinfo2().hblks - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
@pytest.mark.parametrize(("setting", "mapped"), [("", 0), ("map_large_blocks()", 1)], ids=["as it is", "mapped"])
def test_a_large_block_is_a_mapping_of_its_own_whatever_was_freed_before(setting: str, mapped: int) -> None:
    program = _MAPPED_BLOCKS.replace("{setting}", setting)
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=180, check=True)
    assert int(out.stdout) == mapped
    assert LARGE_BLOCK_BYTES <= 1 << 20

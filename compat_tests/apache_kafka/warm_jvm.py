"""One JVM for many runs of Kafka's tools: each saves the start of a JVM, nine tenths of the processor time of most.

The JVM is a gateway of Py4J, which calls the tool's entry point. What a tool prints goes to files, because a tool that
ends with `System.exit` takes the JVM along: its exit code is the tool's, and the next run gets a new JVM. Runs come one
after another. A tool is in ENTRY_POINTS where it is short, reads no standard input and leaves the JVM alive unless it
fails.
"""

from __future__ import annotations

import atexit
import logging
import re
import subprocess
import sysconfig
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it tells of each connection that a JVM's end has cut
_ENDS_WITHIN_S = 30
_OF_REFLECTION = re.compile(rb"\n\tat ((java\.base/)?(jdk\.internal\.reflect|java\.lang\.(reflect|Thread))|py4j)\..*")
"""The frames of a stack trace that lead to the tool. They change when the JVM has compiled them: the accessor that it
makes for a method that is called often names no module.
"""

MAIN, MAIN_NO_EXIT, EXECUTE = "main", "mainNoExit", "execute"
"""`main(args)`; `mainNoExit(args)`, which returns the exit code; `execute(args, out)`, which does so, too."""

ENTRY_POINTS = {
    "kafka.admin.ConfigCommand": MAIN,
    "kafka.tools.StorageTool": EXECUTE,
    "org.apache.kafka.tools.AclCommand": MAIN,
    "org.apache.kafka.tools.BrokerApiVersionsCommand": MAIN_NO_EXIT,
    "org.apache.kafka.tools.DeleteRecordsCommand": MAIN_NO_EXIT,
    "org.apache.kafka.tools.DumpLogSegments": MAIN,
    "org.apache.kafka.tools.FeatureCommand": MAIN_NO_EXIT,
    "org.apache.kafka.tools.GetOffsetShell": MAIN_NO_EXIT,
    "org.apache.kafka.tools.LeaderElectionCommand": MAIN_NO_EXIT,
    "org.apache.kafka.tools.LogDirsCommand": MAIN_NO_EXIT,
    "org.apache.kafka.tools.MetadataQuorumCommand": MAIN_NO_EXIT,
    "org.apache.kafka.tools.TopicCommand": MAIN_NO_EXIT,
    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand": MAIN,
}


def py4j_jar() -> str:
    """Where the package's installation puts its jar."""
    return str(next(Path(sysconfig.get_path("data"), "share", "py4j").glob("py4j*.jar")))


class WarmJvm:
    """java: the command up to its class path. The JVM ends with this process at the latest."""

    def __init__(self, java: Sequence[str], class_path: str) -> None:
        command = [*java, "-cp", f"{class_path}:{py4j_jar()}", "py4j.GatewayServer", "--die-on-broken-pipe", "0"]
        self._files = tempfile.TemporaryDirectory(prefix="pykbroker-tools-")
        self._out, self._err = Path(self._files.name, "out"), Path(self._files.name, "err")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        port = int(self._process.stdout.readline())
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, enable_memory_management=False))
        atexit.register(self.close)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def run(self, tool: str, arguments: Sequence[str], timeout_s: float) -> tuple[int, bytes, bytes]:
        """Exit code and output. Raises subprocess.TimeoutExpired, and kills the JVM."""
        killer = threading.Timer(timeout_s, self._process.kill)
        killer.start()
        try:
            code = self._call(tool, arguments)
        finally:
            killer.cancel()
        if code < 0:
            raise subprocess.TimeoutExpired([tool, *arguments], timeout_s)
        return code, self._out.read_bytes(), _OF_REFLECTION.sub(b"", self._err.read_bytes())

    def close(self) -> None:
        atexit.unregister(self.close)
        self._gateway.close()
        self._process.kill()
        self._process.communicate()
        self._files.cleanup()

    def _call(self, tool: str, arguments: Sequence[str]) -> int:
        for file in (self._out, self._err):
            file.write_bytes(b"")
        try:
            return self._enter(tool, arguments)
        except Py4JError:  # the tool has called System.exit, or the JVM was killed
            return self._process.wait(_ENDS_WITHIN_S)

    def _enter(self, tool: str, arguments: Sequence[str]) -> int:
        java: Any = self._gateway.jvm.java
        out, err = (java.io.PrintStream(java.io.FileOutputStream(str(path)), True) for path in (self._out, self._err))
        java.lang.System.setOut(out)
        java.lang.System.setErr(err)
        try:
            return self._entered(tool, arguments, out) or 0
        except Py4JJavaError as error:  # what a JVM would end with, after printing it
            error.java_exception.getCause().printStackTrace(err)
            return 1
        finally:
            with suppress(Py4JError):
                out.close()
                err.close()

    def _entered(self, tool: str, arguments: Sequence[str], out: Any) -> int | None:
        """By reflection: `mainNoExit` is not public."""
        lang: Any = self._gateway.jvm.java.lang
        strings = self._array(lang.String, arguments)
        given = [(strings, strings.getClass())]
        if ENTRY_POINTS[tool] == EXECUTE:
            given.append((out, lang.Class.forName("java.io.PrintStream")))
        types = self._array(lang.Class, [each for _, each in given])
        method = lang.Class.forName(tool).getDeclaredMethod(ENTRY_POINTS[tool], types)
        method.setAccessible(True)
        code: int | None = method.invoke(None, self._array(lang.Object, [each for each, _ in given]))
        return code

    def _array(self, of_class: Any, values: Sequence[Any]) -> Any:
        array = self._gateway.new_array(of_class, len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

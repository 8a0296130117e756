"""A process that is started again whenever it ends, and killed on request."""

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType


class Supervised:
    """with Supervised(command, log): … — `starts` counts how often it was started."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = list(command)
        self._log = log
        self._lock = threading.Lock()
        self._is_over = False
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Supervised":
        self._thread.start()
        return self

    def __exit__(
        self, type_: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_over = True
        self.kill()
        self._thread.join()

    def kill(self) -> None:
        """kill -9; it is started again."""
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    def _run(self) -> None:
        with self._log.open("ab") as log:
            while True:
                with self._lock:
                    if self._is_over:
                        return
                    self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=os.environ)
                    self.starts += 1
                self._process.wait()

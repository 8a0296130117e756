"""Compile what a node and the commands import, of Python's own library, too: images of Python come without compiled
files.

Run by root while the image is built. The user of the image could not write the files, and each start would compile
anew.
"""

import compileall
import importlib
import pkgutil
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

NOT_IN_IMAGE = ("pykbroker.__main__", "pykbroker.control", "pykbroker.sim", "pykbroker.spark", "pykbroker.testing")


def import_all() -> None:
    """Import the modules of pykbroker that need no package beyond those that are installed."""
    import cramjam  # noqa: F401 - functions import it

    import pykbroker

    for module in pkgutil.walk_packages(pykbroker.__path__, "pykbroker."):
        if not module.name.startswith(NOT_IN_IMAGE):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                sys.stdout.write(f"without {error.name}: {module.name}\n")


def compile_all() -> bool:
    """Compile each module that is loaded now; its compiled file counts whatever the times of the files say."""
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    sources = [Path(name) for name in files if name.endswith(".py")]
    mode = PycInvalidationMode.UNCHECKED_HASH
    done = [compileall.compile_file(path, quiet=1, force=True, invalidation_mode=mode) for path in sources]
    return all(done)


import_all()
raise SystemExit(0 if compile_all() else 1)

"""One module per API. Importing this package imports them all, which registers their handlers (`server.node.handlers`).

A module that is added to this folder is served and advertised from then on.
"""

from importlib import import_module
from pkgutil import iter_modules

from pykbroker.server.node.handlers import HANDLERS

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["HANDLERS"]

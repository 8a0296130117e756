"""`start --savepoint`: a node that begins with the state that a savepoint has."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from .command import CommandFailed, one_line

if TYPE_CHECKING:
    from pykbroker.config import BrokerConfig
    from pykbroker.control.clocks.clocks import Clocks

_log = logging.getLogger(__name__)


def read_node_id(savepoint: Path) -> int:
    from pykbroker.control.savepoints.errors import SavepointError
    from pykbroker.control.savepoints.saving import node_id_of

    try:
        return node_id_of(savepoint)
    except SavepointError as error:
        raise CommandFailed(one_line(error)) from None


def unpack_savepoint(savepoint: Path, config: BrokerConfig, *, durably: bool) -> Clocks:
    from pykbroker.control.clocks.clocks import Clocks
    from pykbroker.control.savepoints.errors import SavepointError
    from pykbroker.control.savepoints.saving import unpack

    try:
        manifest = unpack(savepoint, config, durably=durably)
    except SavepointError as error:
        raise CommandFailed(one_line(error)) from None
    _log.info("%d files with %d bytes come from the savepoint %s", len(manifest.files), manifest.size_bytes, savepoint)
    return Clocks(manifest.advances)

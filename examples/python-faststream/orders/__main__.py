"""`python -m orders CATALOGUE LEDGER`: runs the pipeline until a signal ends it."""

import asyncio
import os
import sys
from pathlib import Path

from faststream import FastStream

from .catalogue import FixedCatalogue
from .ledger import Ledger
from .pipeline import make_broker
from .settings import Settings


def main() -> None:
    catalogue, ledger = FixedCatalogue.from_file(Path(sys.argv[1])), Ledger(sys.argv[2])
    broker = make_broker(Settings.from_environment(os.environ), catalogue, ledger)
    asyncio.run(FastStream(broker).run())


main()

"""`python -m payments INSTANCE`: makes the topics, and books payments until a signal ends it."""

import os
import signal
import sys
import threading

from .service import Service
from .settings import Settings
from .topics import set_up_topics


def main() -> None:
    settings = Settings.from_environment(os.environ)
    set_up_topics(settings)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    Service(settings, sys.argv[1]).run(stop)


main()

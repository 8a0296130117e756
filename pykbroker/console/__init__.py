"""The console in a browser, served by the broker itself: pages of plain files, and an API that they ask.

The console is a client of its own broker. What a page shows or changes goes through `pykbroker.client` and the broker's
listener, so users have the rights, quotas and errors that they have with any other client. Not here: sockets and HTTP
(`pykbroker.web`), metrics and health, which have paths of their own on the same address.

A new page takes a file and a line on either side:

1. A module in `api/` with `async def name(asking: Asking, given: Arguments) -> Json`, and its line in `endpoints.py`.
2. A module in `static/views/` with `export async function show(view)`, and its line in `static/views.js`.

`docs/console.md` shows both. The modules, in reading order:

- `endpoint`: a row of the table, and what a function gets; `endpoints`: the table.
- `application`: the way of a request; `checks`, `given`, `failures`, `json_texts`: its steps.
- `event_stream`: live events to a page.
- `settings`, `own_broker`: the broker, as its console reaches it.
- `login`, `bearer`, `attempts`, `sessions`, `cookie`: users.
- `static_files`: the pages' files.
- `records`: records, read and shown within bounds.
- `api`: what the endpoints do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pykbroker.server.runtime.threads import WorkerThreads

from .application import ConsoleApplication
from .settings import settings_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from pykbroker.web.place import Place

THREADS: Final = 2


def console_application(place: Place) -> ASGIApp:
    """Return the console of a broker that serves. Raises ConfigurationError."""
    assert place.node.parts is not None
    settings = settings_of(place.node.parts.node.config, place.ready.listeners)
    application = ConsoleApplication(settings, WorkerThreads(THREADS))
    place.nursery.start_soon(application.run)
    return application.asgi

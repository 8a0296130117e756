"""A `Cluster` whose connections go to where its brokers were found, wherever Metadata says that they are.

So a cluster whose advertised addresses lead nowhere is still looked at. What leads nowhere is not tried again.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

import trio

from pykbroker.client.cluster import Cluster, Open, open_tcp
from pykbroker.client.tls import open_with_tls

from .access import Access
from .facts import AdvertisedAddress
from .knocking import CLIENT_ID
from .knocks import Knock

REQUEST_TIMEOUT_MS = 5_000
API_TIMEOUT_MS = 6_000


def cluster_of(access: Access, entry: Knock, addresses: Iterable[AdvertisedAddress]) -> Cluster:
    """An async context manager."""
    open_stream = open_tcp if access.context is None else open_with_tls(access.context)
    return Cluster(
        [(entry.host, entry.port)],
        client_id=CLIENT_ID,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        api_timeout_ms=API_TIMEOUT_MS,
        open_stream=_rerouted(open_stream, addresses),
        credentials=access.credentials,
    )


def _rerouted(open_stream: Open, addresses: Iterable[AdvertisedAddress]) -> Open:
    routes = {(each.host, each.port): each.working for each in addresses}

    async def open_there(host: str, port: int) -> trio.abc.Stream:
        found = routes.get((host, port), (host, port))
        if found is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "no broker was found there")
        return await open_stream(*found)

    return open_there

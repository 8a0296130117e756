"""Look behind each address that Metadata hands out: does it lead to the broker that it is said to lead to?

Where it does not, some other addresses are tried: those that a forwarded port or another name would give the broker.
"""

from __future__ import annotations

from typing import Final

import trio

from pykbroker.client.configs import ResourceType
from pykbroker.client.connection import Connection
from pykbroker.client.errors import ClientError
from pykbroker.client.metadata import Node
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

from .access import Access
from .facts import AdvertisedAddress, Candidate, Facts
from .findings import some
from .knocking import connected, knock
from .knocks import BrokerAnswer, Knock

MOST_BROKERS: Final = 50
MOST_CANDIDATES: Final = 5
_AT_ONCE: Final = 8


class AddressLook:
    """Knocks at the brokers of one cluster, at each address once. entry: what has led to the cluster."""

    def __init__(self, access: Access, entry: Knock) -> None:
        assert entry.answer is not None
        self._access = access
        self._entry = entry
        self._answer: BrokerAnswer = entry.answer
        self._knocks: dict[tuple[str, int], Knock] = {(entry.host, entry.port): entry}
        self._limit = trio.CapacityLimiter(_AT_ONCE)

    async def look(self, facts: Facts) -> None:
        """Add what is behind each address, in the order of node ids."""
        nodes = sorted(self._answer.nodes)
        if len(nodes) > MOST_BROKERS:
            facts.unknown.append(f"{len(nodes) - MOST_BROKERS} of {len(nodes)} brokers' addresses were not tried")
        found: dict[int, AdvertisedAddress] = {}

        async def look_at(node: Node) -> None:
            found[node.node_id] = await self._look_at(node)

        try:
            async with trio.open_nursery() as nursery:
                for node in nodes[:MOST_BROKERS]:
                    nursery.start_soon(look_at, node)
        finally:  # also where the time is over before all have been tried
            facts.addresses = [found[each] for each in sorted(found)]
        unsure = [str(each.node_id) for each in facts.addresses if each.is_good and each.is_node is None]
        if unsure and len(facts.addresses) > 1:
            facts.unknown.append(
                f"which broker is at the addresses of {some(unsure)} was not told (DESCRIBE_CONFIGS on the cluster)"
            )

    async def _look_at(self, node: Node) -> AdvertisedAddress:
        advertised = await self._try(node.host, node.port, node.node_id)
        address = AdvertisedAddress(
            node.node_id, node.host, node.port, advertised.knock, advertised.is_same_cluster, advertised.is_node
        )
        if address.is_good:
            return address
        candidates = []
        for host, port in self._candidates(node):
            candidates.append(await self._try(host, port, node.node_id))
            if candidates[-1].is_found:
                break
        return AdvertisedAddress(
            node.node_id,
            node.host,
            node.port,
            advertised.knock,
            advertised.is_same_cluster,
            advertised.is_node,
            tuple(candidates),
        )

    def _candidates(self, node: Node) -> list[tuple[str, int]]:
        """The address that was the way in, its host with the broker's port, and this machine with both ports.

        Where a log-in goes over the wire in plain, nobody on this machine gets it who was not named.
        """
        entry = self._entry
        others = [(entry.host, entry.port), (entry.host, node.port), (node.host, entry.port)]
        if self._access.credentials is None or self._access.context is not None:
            others += [("localhost", node.port), ("localhost", entry.port)]
        return [each for each in dict.fromkeys(others) if each != (node.host, node.port)][:MOST_CANDIDATES]

    async def _try(self, host: str, port: int, node_id: int) -> Candidate:
        async with self._limit:
            known = self._knocks.get((host, port))
            if known is None:
                known = self._knocks[host, port] = await knock(host, port, self._access)
            is_same = known.answer is not None and known.answer.cluster_id == self._answer.cluster_id
            is_node = await self._is_node(host, port, node_id) if is_same else None
        return Candidate(known, is_same, is_node)

    async def _is_node(self, host: str, port: int, node_id: int) -> bool | None:
        """Tell whether the broker there has this id: it describes its own configuration, and refuses that of others.

        None where it does not say, since that takes a right (DESCRIBE_CONFIGS on the cluster).
        """
        try:
            async with connected(host, port, self._access) as connection:
                return await speaks_for(connection, node_id)
        except (ClientError, OSError):
            return None


async def speaks_for(connection: Connection, node_id: int) -> bool | None:
    """Ask a broker for the configuration of a broker. Raises ClientError."""
    resource = DescribeConfigsResource(
        resource_type=ResourceType.BROKER, resource_name=str(node_id), configuration_keys=["node.id"]
    )
    response = await connection.request(DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse)
    codes = [each.error_code for each in response.results]
    if codes == [ErrorCode.NONE]:
        return True
    return False if codes == [ErrorCode.INVALID_REQUEST] else None

"""The metrics of clients that have a quota: what was counted against it, and how often and for how long it throttled.

Series are those of the sensors that measure: a client, or all that share a quota. Kafka's counterparts are the sensors
of `ClientQuotaManager`, whose rates are averages over the quota's windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.server.runtime.turns import Turn

from .readings import Readings

if TYPE_CHECKING:
    from pykbroker.server.node.broker import ClusterNode

_STEPS_OF_CLIENT = 3
_LOOKED_AT_IN_A_STEP = 20
_MS_OF_PERCENT = 10
"""A quota of time is counted in percent of a second."""


async def read_quotas(node: ClusterNode, readings: Readings, turn: Turn, *, most: int) -> None:
    """Read what each quota has measured; nothing of one that measures more than `most` clients."""
    quotas, now_ms = node.client_quotas, node.clock.monotonic_ms()
    for resource, name, of_one, quota in (
        ("Produce", "byte", 1, quotas.produce),
        ("Fetch", "byte", 1, quotas.fetch),
        ("Request", "request_time_ms", _MS_OF_PERCENT, quotas.request),
        ("ControllerMutation", "mutation", 1, quotas.mutations),
    ):
        measured = quota.told(now_ms)
        await turn.took(len(measured) // _LOOKED_AT_IN_A_STEP)
        if len(measured) > most:
            readings.add("pykbroker_left_out", len(measured), f"clients with a quota of {resource}")
            continue
        for told in measured:
            labels = (resource, *told.labels)
            readings.add(f"kafka_server_quota_{name}", told.total * of_one, *labels)
            readings.add_summary("kafka_server_quota_throttle_time", told.throttles, told.throttled_ms, *labels)
            await turn.took(_STEPS_OF_CLIENT)

"""All endpoints of the console's API, one line each. Nothing is imported here of what does their work."""

from __future__ import annotations

from typing import Final

from .endpoint import Endpoint

_API: Final = "pykbroker.console.api"
_MOST_RECORD: Final = 4 * 1024 * 1024

ENDPOINTS: Final = (
    Endpoint("GET", "/overview", f"{_API}.overview:overview"),
    Endpoint("GET", "/throughput", f"{_API}.throughput:throughput"),
    # topics
    Endpoint("GET", "/topics", f"{_API}.topics:topics"),
    Endpoint("POST", "/topics", f"{_API}.topic_changes:create"),
    Endpoint("GET", "/topics/{name}", f"{_API}.topic:topic"),
    Endpoint("DELETE", "/topics/{name}", f"{_API}.topic_changes:delete", longest_s=40),
    Endpoint("GET", "/topics/{name}/configs", f"{_API}.topic_configs:configs"),
    Endpoint("PUT", "/topics/{name}/configs", f"{_API}.topic_configs:alter"),
    Endpoint("PUT", "/topics/{name}/partitions", f"{_API}.topic_changes:grow"),
    Endpoint("DELETE", "/topics/{name}/records", f"{_API}.topic_changes:purge", longest_s=40),
    # records
    Endpoint("GET", "/topics/{name}/records", f"{_API}.records:records", longest_s=30),
    Endpoint(
        "POST",
        "/topics/{name}/records",
        f"{_API}.record_production:produce",
        longest_s=30,
        most_body_bytes=_MOST_RECORD,
    ),
    Endpoint("GET", "/topics/{name}/records/search", f"{_API}.record_search:search", is_stream=True),
    Endpoint("GET", "/topics/{name}/records/tail", f"{_API}.record_tail:tail", is_stream=True),
    Endpoint("GET", "/topics/{name}/records/{partition}/{offset}", f"{_API}.record:record", longest_s=30),
    Endpoint("GET", "/topics/{name}/records/{partition}/{offset}/{part}", f"{_API}.record:download", longest_s=30),
    # groups
    Endpoint("GET", "/groups", f"{_API}.groups:groups"),
    Endpoint("GET", "/group", f"{_API}.group:group"),
    Endpoint("GET", "/group/share", f"{_API}.share_group:share_group"),
    Endpoint("GET", "/group/share/deliveries", f"{_API}.share_deliveries:deliveries"),
    Endpoint("GET", "/group/streams", f"{_API}.streams_group:streams_group"),
    Endpoint("DELETE", "/group", f"{_API}.group:delete", longest_s=40),
    Endpoint("GET", "/group/reset", f"{_API}.group_reset:plan"),
    Endpoint("PUT", "/group/offsets", f"{_API}.group_reset:reset", longest_s=40, most_body_bytes=4 * 1024 * 1024),
    # the cluster
    Endpoint("GET", "/cluster", f"{_API}.cluster:cluster"),
    Endpoint("GET", "/cluster/partitions", f"{_API}.troubled_partitions:troubled"),
    Endpoint("GET", "/configs", f"{_API}.broker_configs:configs"),
    Endpoint("PUT", "/configs", f"{_API}.broker_configs:alter"),
    # transactions and producers
    Endpoint("GET", "/transactions", f"{_API}.transactions:transactions"),
    Endpoint("GET", "/transaction", f"{_API}.transactions:transaction"),
    Endpoint("GET", "/topics/{name}/producers", f"{_API}.producers:producers"),
    Endpoint("DELETE", "/topics/{name}/producers/transaction", f"{_API}.producers:abort"),
    # users and rights
    Endpoint("GET", "/users", f"{_API}.users:users"),
    Endpoint("PUT", "/users", f"{_API}.users:set_password"),
    Endpoint("DELETE", "/users", f"{_API}.users:delete"),
    Endpoint("GET", "/tokens", f"{_API}.tokens:tokens"),
    Endpoint("GET", "/quotas", f"{_API}.quotas:quotas"),
    Endpoint("PUT", "/quotas", f"{_API}.quotas:alter"),
    Endpoint("DELETE", "/quotas", f"{_API}.quotas:remove"),
    Endpoint("GET", "/acls", f"{_API}.acls:acls"),
    Endpoint("POST", "/acls", f"{_API}.acls:add"),
    Endpoint("DELETE", "/acls", f"{_API}.acls:remove"),
)

"""Members of the metadata quorum ask each other: Vote (52), BeginQuorumEpoch (53), EndQuorumEpoch (54),
FetchSnapshot (59), UpdateRaftVoter (82) and Fetch (1) of the metadata log, on the controller listener alone; and what
administrators ask, AddRaftVoter (80) and RemoveRaftVoter (81), which brokers forward (KIP-853).

The rules are raft's. A Fetch waits there until there is news for it.
"""

from __future__ import annotations

from pykbroker.protocol.messages.fetch import FetchRequest
from pykbroker.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    VoteRequest,
)
from pykbroker.protocol.messages.voters import AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles, handles_on_controllers

from .controller_requests import submit


async def _ask_raft(context: RequestContext[ClusterNode], request: Message) -> Message:
    return await context.node.raft.answer(request, context.header.api_version, context.listener_name)


for _request_type in (
    VoteRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    UpdateRaftVoterRequest,
):
    handles_on_controllers(_request_type, needs=cluster(Operation.CLUSTER_ACTION))(_ask_raft)

for _change_type in (AddRaftVoterRequest, RemoveRaftVoterRequest):
    handles_on_controllers(_change_type, needs=cluster(Operation.ALTER))(_ask_raft)
    handles(_change_type, needs=cluster(Operation.ALTER))(submit)

package nodes;

import kafka.raft.KafkaRaftManager;

import org.apache.kafka.common.message.DescribeQuorumRequestData;
import org.apache.kafka.common.message.DescribeQuorumRequestData.TopicData;
import org.apache.kafka.common.message.DescribeQuorumResponseData;
import org.apache.kafka.common.message.DescribeQuorumResponseData.PartitionData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DescribeQuorumRequest;
import org.apache.kafka.common.requests.DescribeQuorumResponse;
import org.apache.kafka.raft.KafkaRaftClient;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import java.util.List;
import java.util.Map;
import java.util.OptionalInt;

/** What the node on a port tells of the quorum of controllers: a broker what the leader says, a controller whether it leads. */
final class KnownQuorum {
    private static final short DESCRIBE_QUORUM = 2;

    private final int port;

    KnownQuorum(int port) {
        this.port = port;
    }

    /** Its log ends at 0: whoever waits until brokers have applied it goes by {@code waitForReadyBrokers} already. */
    @SuppressWarnings("unchecked")
    KafkaRaftManager<ApiMessageAndVersion> raftManager() {
        RaftLog log = Stand.in(RaftLog.class, Map.of("endOffset", a -> new LogOffsetMetadata(0)));
        KafkaRaftClient<ApiMessageAndVersion> client = Stand.in(KafkaRaftClient.class, Map.of("leaderAndEpoch", a -> leader()));
        return Stand.in(KafkaRaftManager.class, Map.of("raftLog", a -> log, "client", a -> client));
    }

    private LeaderAndEpoch leader() {
        DescribeQuorumResponseData answer = describe();
        if (answer.errorCode() != Errors.NONE.code()) return LeaderAndEpoch.UNKNOWN;
        PartitionData quorum = answer.topics().get(0).partitions().get(0);
        Errors error = Errors.forCode(quorum.errorCode());
        if (error == Errors.NOT_LEADER_OR_FOLLOWER) throw RunningTest.needs("KafkaRaftClient.leaderAndEpoch of a follower");
        error.maybeThrow();
        return new LeaderAndEpoch(OptionalInt.of(quorum.leaderId()), quorum.leaderEpoch());
    }

    /** Whether the controller on the port answers as the one that leads. */
    boolean isLeader() {
        DescribeQuorumResponseData answer = describe();
        Errors.forCode(answer.errorCode()).maybeThrow();
        Errors error = Errors.forCode(answer.topics().get(0).partitions().get(0).errorCode());
        if (error == Errors.NOT_LEADER_OR_FOLLOWER) return false;
        error.maybeThrow();
        return true;
    }

    private DescribeQuorumResponseData describe() {
        TopicData topic = new TopicData().setTopicName("__cluster_metadata")
            .setPartitions(List.of(new DescribeQuorumRequestData.PartitionData()));
        DescribeQuorumRequestData data = new DescribeQuorumRequestData().setTopics(List.of(topic));
        return ((DescribeQuorumResponse) Request.send(port, new DescribeQuorumRequest.Builder(data).build(DESCRIBE_QUORUM))).data();
    }
}

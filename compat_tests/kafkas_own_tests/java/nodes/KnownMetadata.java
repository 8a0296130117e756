package nodes;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.MetadataResponse.PartitionMetadata;
import org.apache.kafka.common.requests.MetadataResponse.TopicMetadata;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/** What the broker on a port knows of the cluster, by its answers to Metadata, ApiVersions and DescribeFeatures. */
final class KnownMetadata {
    private final int port;

    KnownMetadata(int port) {
        this.port = port;
    }

    KRaftMetadataCache cache() {
        Map<String, Stand.Method> m = new HashMap<>();
        m.put("numPartitions", a -> topic((String) a[0]).map(t -> t.partitionMetadata().size()));
        m.put("contains", a -> a[0] instanceof TopicPartition p
            ? partition(p.topic(), p.partition()).isPresent() : topic((String) a[0]).isPresent());
        m.put("getTopicId", a -> topic((String) a[0]).map(TopicMetadata::topicId).orElse(Uuid.ZERO_UUID));
        m.put("getAllTopics", a -> Request.metadata(port, null).topicMetadata().stream().map(TopicMetadata::topic)
            .collect(Collectors.toSet()));
        m.put("hasAliveBroker", a -> Request.metadata(port, List.of()).brokers().stream().anyMatch(b -> b.id() == (Integer) a[0]));
        m.put("getAliveBrokerNodes", a -> new ArrayList<>(Request.metadata(port, List.of()).brokers()));
        m.put("getAliveBrokerNode", a -> Request.metadata(port, List.of()).brokers().stream()
            .filter(b -> b.id() == (Integer) a[0]).findFirst());
        m.put("getPartitionReplicaEndpoints", a -> replicas((TopicPartition) a[0]));
        m.put("getLeaderAndIsr", a -> partition((String) a[0], (Integer) a[1]).map(KnownMetadata::leaderAndIsr));
        return Stand.in(KRaftMetadataCache.class, m);
    }

    Map<String, Uuid> topicIds() {
        return Request.metadata(port, null).topicMetadata().stream()
            .collect(Collectors.toMap(TopicMetadata::topic, TopicMetadata::topicId));
    }

    /** The offset of the metadata log that the broker has applied: the epoch of the finalized features is just that. */
    long lastAppliedOffset() {
        return Request.apiVersions(port).data().finalizedFeaturesEpoch();
    }

    short groupVersion() {
        try (Admin admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:" + port))) {
            FinalizedVersionRange level = admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("group.version");
            return level == null ? 0 : level.maxVersionLevel();
        } catch (InterruptedException | ExecutionException e) {
            throw new RuntimeException(e);
        }
    }

    private Optional<TopicMetadata> topic(String name) {
        return Request.metadata(port, List.of(name)).topicMetadata().stream()
            .filter(t -> t.error() == Errors.NONE || t.error() == Errors.LEADER_NOT_AVAILABLE).findFirst();
    }

    Optional<PartitionMetadata> partition(String topic, int partition) {
        return topic(topic).flatMap(t -> t.partitionMetadata().stream().filter(p -> p.partition() == partition).findFirst());
    }

    /** The replicas whose brokers are alive, by id; the test's listener is the one that is asked. */
    private Map<Integer, Node> replicas(TopicPartition partition) {
        Map<Integer, Node> alive = Request.metadata(port, List.of()).brokersById();
        return partition(partition.topic(), partition.partition()).stream().flatMap(p -> p.replicaIds.stream())
            .filter(alive::containsKey).collect(Collectors.toMap(id -> id, alive::get));
    }

    private static LeaderAndIsr leaderAndIsr(PartitionMetadata partition) {
        return new LeaderAndIsr(partition.leaderId.orElse(LeaderAndIsr.NO_LEADER), partition.leaderEpoch.orElse(0),
            partition.inSyncReplicaIds, LeaderRecoveryState.RECOVERED, LeaderAndIsr.INITIAL_PARTITION_EPOCH);
    }
}

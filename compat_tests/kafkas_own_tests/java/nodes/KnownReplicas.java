package nodes;

import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.NotLeaderOrFollowerException;
import org.apache.kafka.common.requests.MetadataResponse.PartitionMetadata;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.File;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.OptionConverters;

/** The replicas of one broker: those that have a directory among its files; none is online where its process is gone. */
final class KnownReplicas {
    private final NodeProcess process;
    private final KafkaConfig config;
    private final int port;
    private final KnownMetadata known;

    KnownReplicas(NodeProcess process, KafkaConfig config, int port, KnownMetadata known) {
        this.process = process;
        this.config = config;
        this.port = port;
        this.known = known;
    }

    LogManager logManager() {
        return Stand.in(LogManager.class, Map.of(
            "getLog", a -> OptionConverters.toScala(log((TopicPartition) a[0])),
            "getLog$default$2", a -> false,
            "currentDefaultConfig", a -> KnownLogConfig.ofBroker(port, config.nodeId(), config.originals()),
            "liveLogDirs", a -> CollectionConverters.asScala(config.logDirs().stream().map(File::new).toList()).toSeq()));
    }

    ReplicaManager replicaManager(KRaftMetadataCache cache) {
        Map<String, Stand.Method> m = new HashMap<>();
        m.put("metadataCache", a -> cache);
        m.put("logManager", a -> logManager());
        m.put("getLog", a -> OptionConverters.toScala(log((TopicPartition) a[0])));
        m.put("localLog", a -> OptionConverters.toScala(log((TopicPartition) a[0])));
        m.put("localLogOrException", a -> log((TopicPartition) a[0]).orElseThrow(
            () -> new NotLeaderOrFollowerException("no files of " + a[0])));
        m.put("onlinePartition", a -> OptionConverters.toScala(
            log((TopicPartition) a[0]).filter(log -> process.isUp()).map(log -> partition((TopicPartition) a[0], log))));
        return Stand.in(ReplicaManager.class, m);
    }

    private Optional<UnifiedLog> log(TopicPartition partition) {
        return config.logDirs().stream().map(d -> new File(d, partition.topic() + "-" + partition.partition()))
            .map(File::getAbsoluteFile).filter(File::isDirectory).findFirst().map(directory -> new KnownLog(port, partition, directory).log());
    }

    private Partition partition(TopicPartition partition, UnifiedLog log) {
        return Stand.in(Partition.class, Map.of(
            "leaderLogIfLocal", a -> isLeader(partition) ? Option.apply(log) : Option.empty(),
            "isLeader", a -> isLeader(partition),
            "leaderReplicaIdOpt", a -> OptionConverters.toScala(metadata(partition).flatMap(p -> p.leaderId)),
            "getLeaderEpoch", a -> metadata(partition).flatMap(p -> p.leaderEpoch).orElseThrow()));
    }

    private boolean isLeader(TopicPartition partition) {
        return metadata(partition).flatMap(p -> p.leaderId).filter(leader -> leader == config.nodeId()).isPresent();
    }

    private Optional<PartitionMetadata> metadata(TopicPartition partition) {
        return known.partition(partition.topic(), partition.partition());
    }
}

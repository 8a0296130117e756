package nodes;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.DescribeProducersRequestData;
import org.apache.kafka.common.message.DescribeProducersRequestData.TopicRequest;
import org.apache.kafka.common.message.DescribeProducersResponseData.PartitionResponse;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsTopic;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.DescribeProducersRequest;
import org.apache.kafka.common.requests.DescribeProducersResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Stream;

/** One replica's log, by its files and by the answers of its broker, which may lead the partition or follow. */
final class KnownLog {
    private static final short DESCRIBE_PRODUCERS = 0;
    private static final short LIST_OFFSETS = 10;

    private final int port;
    private final TopicPartition partition;
    private final File directory;

    KnownLog(int port, TopicPartition partition, File directory) {
        this.port = port;
        this.partition = partition;
        this.directory = directory;
    }

    UnifiedLog log() {
        Map<String, Stand.Method> m = new HashMap<>();
        m.put("dir", a -> directory);
        m.put("topicPartition", a -> partition);
        m.put("config", a -> KnownLogConfig.ofTopic(port, partition.topic()));
        m.put("logStartOffset", a -> offset(ListOffsetsRequest.EARLIEST_TIMESTAMP));
        m.put("logEndOffset", a -> offset(ListOffsetsRequest.LATEST_TIMESTAMP));
        m.put("size", a -> segmentFiles().mapToLong(File::length).sum());
        m.put("numberOfSegments", a -> (int) segmentFiles().count());
        m.put("logSegments", a -> segments());
        m.put("producerStateManager", a -> Stand.in(ProducerStateManager.class, Map.of("activeProducers", b -> producers())));
        return Stand.in(UnifiedLog.class, m);
    }

    /** What a consumer for debugging sees: any replica answers it, and its latest offset is the end of the log. */
    private long offset(long timestamp) {
        ListOffsetsPartition asked = new ListOffsetsPartition().setPartitionIndex(partition.partition()).setTimestamp(timestamp);
        ListOffsetsTopic topic = new ListOffsetsTopic().setName(partition.topic()).setPartitions(List.of(asked));
        ListOffsetsResponse response = (ListOffsetsResponse) Request.send(port, ListOffsetsRequest.Builder
            .forReplica(LIST_OFFSETS, ListOffsetsRequest.DEBUGGING_REPLICA_ID).setTargetTimes(List.of(topic)).build(LIST_OFFSETS));
        ListOffsetsPartitionResponse answer = response.topics().get(0).partitions().get(0);
        Errors.forCode(answer.errorCode()).maybeThrow();
        return answer.offset();
    }

    private Map<Long, ProducerStateEntry> producers() {
        TopicRequest topic = new TopicRequest().setName(partition.topic()).setPartitionIndexes(List.of(partition.partition()));
        DescribeProducersRequestData data = new DescribeProducersRequestData().setTopics(List.of(topic));
        DescribeProducersResponse response = (DescribeProducersResponse) Request.send(port,
            new DescribeProducersRequest.Builder(data).build(DESCRIBE_PRODUCERS));
        PartitionResponse answer = response.data().topics().get(0).partitions().get(0);
        Errors.forCode(answer.errorCode()).maybeThrow();
        Map<Long, ProducerStateEntry> producers = new HashMap<>();
        answer.activeProducers().forEach(p -> producers.put(p.producerId(), new ProducerStateEntry(p.producerId(),
            (short) p.producerEpoch(), p.coordinatorEpoch(), p.lastTimestamp(),
            p.currentTxnStartOffset() < 0 ? OptionalLong.empty() : OptionalLong.of(p.currentTxnStartOffset()))));
        return producers;
    }

    private Stream<File> segmentFiles() {
        return Arrays.stream(directory.listFiles((d, name) -> name.endsWith(UnifiedLog.LOG_FILE_SUFFIX))).sorted();
    }

    /** Kafka's own segments, opened on the broker's files: what they read is the broker's. */
    private List<LogSegment> segments() {
        LogConfig config = new LogConfig(Map.of());
        return segmentFiles().map(file -> {
            try {
                return LogSegment.open(directory, Long.parseLong(file.getName().replace(UnifiedLog.LOG_FILE_SUFFIX, "")),
                    config, Time.SYSTEM, true, 0, false, "");
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }).toList();
    }
}

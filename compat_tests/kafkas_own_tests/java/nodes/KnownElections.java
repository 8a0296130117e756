package nodes;

import net.bytebuddy.implementation.bind.annotation.FieldValue;

import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;

/**
 * In the place of a controller's metric of unclean elections: those that its metadata log tells of.
 *
 * <p>The log is counted by the rule of the metric, from its first record on: the cluster of such a test is its own, since
 * the test stops brokers, and is too young for a snapshot. The harness has {@code UncleanLeaderElectionTest} ask here
 * ({@link ChangedClasses}).
 */
public final class KnownElections {
    private KnownElections() { }

    /**
     * In the place of {@code getLeaderElectionCount}. A cluster of several controllers has the count of one of them.
     *
     * <p>Of a combined node a test stops the broker next, and goes on with its controller: a process stops as a whole.
     */
    public static long unclean(@FieldValue("cluster") ClusterInstance cluster) {
        if (cluster.type() == Type.CO_KRAFT) throw RunningTest.needs("a broker that stops without its controller");
        File directory = new File(cluster.controllers().values().iterator().next().config().metadataLogDir(), "__cluster_metadata-0");
        File[] segments = directory.listFiles((in, name) -> name.endsWith(".log"));
        if (segments == null || segments.length == 0) throw new IllegalStateException("no metadata log in " + directory);
        long count = 0;
        for (File segment : segments) count += uncleanOf(segment);
        return count;
    }

    private static long uncleanOf(File segment) {
        long count = 0;
        try {
            FileRecords records = FileRecords.open(segment, false);
            try {
                for (RecordBatch batch : records.batches()) {
                    if (batch.isControlBatch()) continue;
                    for (Record each : batch) {
                        if (isUnclean(each)) count++;
                    }
                }
            } finally {
                records.closeHandlers();  // close() would cut the file where the records end, which the node writes
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return count;
    }

    private static boolean isUnclean(Record read) {
        return new MetadataRecordSerde().read(new ByteBufferAccessor(read.value()), read.valueSize()).message()
            instanceof PartitionChangeRecord change && PartitionRegistration.electionWasUnclean(change.leaderRecoveryState());
    }
}

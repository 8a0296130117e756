import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Share consumers of one group take some records at a time, acknowledge each, and wait until that is durable.
 *
 * Arguments: bootstrap servers, topic, group, number of consumers, records at a time, records in all, of which the
 * first tenth is not measured. Prints the records per second, and the percentiles 50 and 99 of the time that the
 * acknowledgement of one poll takes, in milliseconds.
 */
public class ShareAcknowledgements {
    private static final long IDLE_LIMIT_NS = TimeUnit.SECONDS.toNanos(60);

    private final AtomicLong acknowledged = new AtomicLong();
    private final AtomicLong beganNs = new AtomicLong();
    private final long warmUp;
    private final long records;

    private ShareAcknowledgements(long records) {
        this.records = records;
        this.warmUp = records / 10;
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("group.id", arguments[2]);
        properties.put("share.acknowledgement.mode", "explicit");
        properties.put("share.acquire.mode", "record_limit");
        properties.put("max.poll.records", arguments[4]);
        new ShareAcknowledgements(Long.parseLong(arguments[5])).run(properties, arguments[1], Integer.parseInt(arguments[3]));
    }

    private void run(Properties properties, String topic, int consumers) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(consumers);
        List<Future<List<Long>>> running = new ArrayList<>();
        for (int number = 0; number < consumers; number++) {
            running.add(threads.submit(() -> consume(properties, topic)));
        }
        List<Long> latencies = new ArrayList<>();
        for (Future<List<Long>> each : running) {
            latencies.addAll(each.get());
        }
        double seconds = (System.nanoTime() - beganNs.get()) / 1e9;
        threads.shutdown();
        long[] sorted = latencies.stream().mapToLong(Long::longValue).sorted().toArray();
        System.out.printf("%.1f records/s, p50 %.3f ms, p99 %.3f ms, %d acknowledgements%n",
            (acknowledged.get() - warmUp) / seconds, percentile(sorted, 0.50), percentile(sorted, 0.99), sorted.length);
    }

    private static double percentile(long[] sorted, double part) {
        return sorted[Math.min((int) (sorted.length * part), sorted.length - 1)] / 1e6;
    }

    private List<Long> consume(Properties properties, String topic) {
        List<Long> latencies = new ArrayList<>();
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                 new KafkaShareConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(Arrays.asList(topic));
            long heardNs = System.nanoTime();
            while (acknowledged.get() < records) {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(100));
                if (polled.isEmpty()) {
                    if (System.nanoTime() - heardNs > IDLE_LIMIT_NS) {
                        throw new IllegalStateException("no records for a minute, after " + acknowledged.get());
                    }
                    continue;
                }
                for (ConsumerRecord<byte[], byte[]> record : polled) {
                    consumer.acknowledge(record);
                }
                long askedNs = System.nanoTime();
                consumer.commitSync().forEach((partition, failure) -> failure.ifPresent(error -> {
                    throw error;
                }));
                heardNs = System.nanoTime();
                long count = acknowledged.addAndGet(polled.count());
                if (count >= warmUp) {
                    if (!beganNs.compareAndSet(0, heardNs)) {
                        latencies.add(heardNs - askedNs);
                    }
                }
            }
        }
        return latencies;
    }
}

import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group: settles so many records, each by its number, and says what became of them.
 *
 * <p>Of ten records one is rejected, one is released when it comes first, and one is renewed before it is accepted.
 */
public class ShareWorker {
    private static final Set<String> renewed = new HashSet<>();

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], group = arguments[1], topic = arguments[2], letters = arguments[4];
        int wanted = Integer.parseInt(arguments[3]);
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(properties)) {
            Collection<AlterConfigOp> changes = List.of(
                set("share.auto.offset.reset", "earliest"), set("errors.deadletterqueue.topic.name", letters));
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), changes))
                .all().get();
        }
        properties.put("group.id", group);
        properties.put("share.acknowledgement.mode", "explicit");
        properties.put("key.deserializer", StringDeserializer.class.getName());
        properties.put("value.deserializer", StringDeserializer.class.getName());
        Map<String, Integer> done = new TreeMap<>();
        int settled = 0;
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(properties)) {
            consumer.subscribe(List.of(topic));
            while (settled < wanted) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    AcknowledgeType said = decide(consumer, record);
                    done.merge(said + " at delivery " + record.deliveryCount().get(), 1, Integer::sum);
                    if (said == AcknowledgeType.ACCEPT || said == AcknowledgeType.REJECT) {
                        settled++;
                    }
                }
                consumer.commitSync().forEach((partition, error) ->
                    error.ifPresent(each -> done.merge(each.toString(), 1, Integer::sum)));
            }
        }
        done.forEach((what, count) -> System.out.println(count + " × " + what));
        System.out.println("closed");
    }

    private static AcknowledgeType decide(
        KafkaShareConsumer<String, String> consumer, ConsumerRecord<String, String> record) {
        int number = Integer.parseInt(record.value()) % 10;
        AcknowledgeType type = AcknowledgeType.ACCEPT;
        if (number == 0) {
            type = AcknowledgeType.REJECT;
        } else if (number == 1 && record.deliveryCount().get() == 1) {
            type = AcknowledgeType.RELEASE;
        } else if (number == 2 && renewed.add(record.partition() + "-" + record.offset())) {
            type = AcknowledgeType.RENEW;
        }
        consumer.acknowledge(record, type);
        return type;
    }

    private static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }
}

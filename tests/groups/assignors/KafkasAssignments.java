import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Reads groups as JSON, one a line, and writes what Apache Kafka's own assignors give them, in the same way. */
public class KafkasAssignments {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        for (String line : new String(System.in.readAllBytes(), "UTF-8").split("\n")) {
            System.out.println(JSON.writeValueAsString(assigned(JSON.readTree(line))));
        }
    }

    private static JsonNode assigned(JsonNode group) {
        Map<Uuid, Integer> counts = new HashMap<>();
        group.get("topics").properties().forEach(entry -> counts.put(uuid(entry.getKey()), entry.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new TreeMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        group.get("members").properties().forEach(entry -> {
            Map<Uuid, Set<Integer>> held = held(entry.getValue().get("assignment"));
            held.forEach((topic, partitions) -> partitions.forEach(partition ->
                owners.computeIfAbsent(topic, any -> new HashMap<>()).put(partition, entry.getKey())));
            members.put(entry.getKey(), member(entry.getValue(), held));
        });
        boolean isHomogeneous =
            members.values().stream().map(MemberSubscriptionAndAssignmentImpl::subscribedTopicIds).distinct().count() <= 1;
        GroupSpecImpl spec = new GroupSpecImpl(
            members, isHomogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS, owners);
        boolean isRange = group.get("assignor").asText().equals("range");
        ConsumerGroupPartitionAssignor assignor = isRange ? new RangeAssignor() : new UniformAssignor();
        ObjectNode result = JSON.createObjectNode();
        assignor.assign(spec, new Describer(counts)).members().forEach((memberId, assignment) -> {
            ObjectNode topics = result.putObject(memberId);
            assignment.partitions().forEach((topic, partitions) ->
                new TreeSet<>(partitions).forEach(topics.withArray(number(topic))::add));
        });
        return result;
    }

    private static MemberSubscriptionAndAssignmentImpl member(JsonNode node, Map<Uuid, Set<Integer>> held) {
        Set<Uuid> topics = new HashSet<>();
        node.get("topics").forEach(topic -> topics.add(uuid(topic.asText())));
        Optional<String> instance = Optional.ofNullable(node.get("instance").textValue());
        return new MemberSubscriptionAndAssignmentImpl(Optional.empty(), instance, topics, new Assignment(held));
    }

    private static Map<Uuid, Set<Integer>> held(JsonNode node) {
        Map<Uuid, Set<Integer>> held = new HashMap<>();
        node.properties().forEach(entry -> {
            Set<Integer> partitions = new TreeSet<>();
            entry.getValue().forEach(partition -> partitions.add(partition.asInt()));
            held.put(uuid(entry.getKey()), partitions);
        });
        return Collections.unmodifiableMap(held);
    }

    private static Uuid uuid(String number) {
        return new Uuid(0, Long.parseLong(number));
    }

    private static String number(Uuid uuid) {
        return Long.toString(uuid.getLeastSignificantBits());
    }

    private record Describer(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        public int numPartitions(Uuid topic) {
            return counts.getOrDefault(topic, -1);
        }

        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }
}

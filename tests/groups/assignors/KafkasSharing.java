import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.ArrayList;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Reads share groups as JSON, one a line, and writes what Apache Kafka's own assignor gives them, in the same way. */
public class KafkasSharing {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        for (String line : new String(System.in.readAllBytes(), "UTF-8").split("\n")) {
            System.out.println(JSON.writeValueAsString(assigned(JSON.readTree(line))));
        }
    }

    private static JsonNode assigned(JsonNode group) {
        Map<Uuid, Integer> counts = new HashMap<>();
        group.get("topics").properties().forEach(entry -> counts.put(uuid(entry.getKey()), entry.getValue().asInt()));
        Map<Uuid, Set<Integer>> assignable = partitions(group.get("assignable"));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        group.get("members").properties().forEach(entry -> members.put(entry.getKey(), member(entry.getValue())));
        SubscriptionType type =
            group.get("homogeneous").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        GroupSpecImpl spec =
            new GroupSpecImpl(Collections.unmodifiableMap(members), type, Map.of(), Optional.of(assignable));
        ObjectNode result = JSON.createObjectNode();
        new SimpleAssignor().assign(spec, new Describer(counts)).members().forEach((memberId, assignment) -> {
            ObjectNode topics = result.putObject(memberId);
            assignment.partitions().forEach((topic, partitions) ->
                new TreeSet<>(partitions).forEach(topics.withArray(hex(topic))::add));
        });
        return result;
    }

    private static MemberSubscriptionAndAssignmentImpl member(JsonNode node) {
        Set<Uuid> topics = new LinkedHashSet<>();
        node.get("topics").forEach(topic -> topics.add(uuid(topic.asText())));
        return new MemberSubscriptionAndAssignmentImpl(
            Optional.empty(), Optional.empty(), topics, new Assignment(partitions(node.get("assignment"))));
    }

    private static Map<Uuid, Set<Integer>> partitions(JsonNode node) {
        Map<Uuid, Set<Integer>> partitions = new HashMap<>();
        node.properties().forEach(entry -> {
            List<Integer> indexes = new ArrayList<>();
            entry.getValue().forEach(index -> indexes.add(index.asInt()));
            partitions.put(uuid(entry.getKey()), new HashSet<>(indexes));
        });
        return partitions;
    }

    private static Uuid uuid(String hex) {
        return new Uuid(Long.parseUnsignedLong(hex.substring(0, 16), 16), Long.parseUnsignedLong(hex.substring(16), 16));
    }

    private static String hex(Uuid uuid) {
        return String.format("%016x%016x", uuid.getMostSignificantBits(), uuid.getLeastSignificantBits());
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

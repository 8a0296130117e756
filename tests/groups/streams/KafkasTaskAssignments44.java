import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

/** As `KafkasTaskAssignments`, for the assignor of Kafka 4.4, which looks at the offsets of tasks as well. */
public class KafkasTaskAssignments44 {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        for (String line : new String(System.in.readAllBytes(), "UTF-8").split("\n")) {
            System.out.println(JSON.writeValueAsString(assigned(JSON.readTree(line))));
        }
    }

    private static JsonNode assigned(JsonNode group) {
        Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
        group.get("members").properties().forEach(entry -> members.put(entry.getKey(), new MemberMetadataAndStateImpl(
            Optional.empty(), Optional.empty(), entry.getValue().get("process").asText(), Map.of(),
            tasks(entry.getValue().get("active")), tasks(entry.getValue().get("standby")), Map.of(),
            offsets(entry.getValue().get("offsets")), Map.of())));
        TreeMap<String, Integer> counts = new TreeMap<>();
        Set<String> stateful = new HashSet<>();
        group.get("subtopologies").properties().forEach(entry -> {
            counts.put(entry.getKey(), entry.getValue().get(0).asInt());
            if (entry.getValue().get(1).asBoolean()) stateful.add(entry.getKey());
        });
        AssignmentConfigsImpl configs = AssignmentConfigsImpl.fromMap(Map.of(
            "num.standby.replicas", group.get("replicas").asText(), "rack.aware.assignment.tags", "zone,cluster"));
        ObjectNode result = JSON.createObjectNode();
        new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), new Describer(counts, stateful))
            .members().forEach((memberId, assignment) -> {
                ObjectNode told = result.putObject(memberId);
                put(told.putObject("active"), assignment.activeTasks());
                put(told.putObject("standby"), assignment.standbyTasks());
            });
        return result;
    }

    private static void put(ObjectNode node, Map<String, Set<Integer>> tasks) {
        tasks.forEach((name, partitions) -> new TreeSet<>(partitions).forEach(node.withArray(name)::add));
    }

    private static Map<String, Set<Integer>> tasks(JsonNode node) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        node.properties().forEach(entry -> {
            Set<Integer> partitions = new HashSet<>();
            entry.getValue().forEach(partition -> partitions.add(partition.asInt()));
            tasks.put(entry.getKey(), partitions);
        });
        return tasks;
    }

    private static Map<String, Map<Integer, Long>> offsets(JsonNode node) {
        Map<String, Map<Integer, Long>> offsets = new HashMap<>();
        node.properties().forEach(entry -> {
            Map<Integer, Long> of = new HashMap<>();
            entry.getValue().properties().forEach(each -> of.put(Integer.valueOf(each.getKey()), each.getValue().asLong()));
            offsets.put(entry.getKey(), of);
        });
        return offsets;
    }

    private record Describer(TreeMap<String, Integer> counts, Set<String> stateful) implements TopologyDescriber {
        public List<String> subtopologies() {
            return List.copyOf(counts.keySet());
        }

        public int maxNumInputPartitions(String subtopology) {
            return counts.get(subtopology);
        }

        public boolean isStateful(String subtopology) {
            return stateful.contains(subtopology);
        }
    }
}

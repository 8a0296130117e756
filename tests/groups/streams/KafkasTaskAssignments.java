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
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/** Reads streams groups as JSON, one a line, and writes what Apache Kafka's own assignor gives them, in the same way. */
public class KafkasTaskAssignments {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        for (String line : new String(System.in.readAllBytes(), "UTF-8").split("\n")) {
            System.out.println(JSON.writeValueAsString(assigned(JSON.readTree(line))));
        }
    }

    private static JsonNode assigned(JsonNode group) {
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        group.get("members").properties().forEach(entry -> members.put(entry.getKey(), new AssignmentMemberSpec(
            Optional.empty(), Optional.empty(), tasks(entry.getValue().get("active")),
            tasks(entry.getValue().get("standby")), Map.of(), entry.getValue().get("process").asText(), Map.of(),
            Map.of(), Map.of())));
        TreeMap<String, Integer> counts = new TreeMap<>();
        Set<String> stateful = new HashSet<>();
        group.get("subtopologies").properties().forEach(entry -> {
            counts.put(entry.getKey(), entry.getValue().get(0).asInt());
            if (entry.getValue().get(1).asBoolean()) stateful.add(entry.getKey());
        });
        Map<String, String> configs = Map.of("num.standby.replicas", group.get("replicas").asText());
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

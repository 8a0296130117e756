import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/** Reads clusters as JSON, one a line, and writes where Apache Kafka's own placer puts the replicas. */
public class KafkasPlacements {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        for (String line : new String(System.in.readAllBytes(), "UTF-8").split("\n")) {
            System.out.println(JSON.writeValueAsString(placed(JSON.readTree(line))));
        }
    }

    private static List<List<Integer>> placed(JsonNode asked) {
        PlacementSpec spec = new PlacementSpec(0, asked.get("partitions").asInt(), (short) asked.get("replicas").asInt());
        StripedReplicaPlacer placer = new StripedReplicaPlacer(new OneNumber(asked.get("number").asInt()));
        return placer.place(spec, new Cluster(asked.get("brokers"))).assignments().stream()
            .map(PartitionAssignment::replicas).toList();
    }

    /** Draws the same number each time, so that the order of the draws, which nobody promises, does not matter. */
    private static class OneNumber extends Random {
        private final int number;

        OneNumber(int number) {
            this.number = number;
        }

        @Override
        public int nextInt(int bound) {
            return number % bound;
        }
    }

    private record Cluster(JsonNode brokers) implements ClusterDescriber {
        @Override
        public Iterator<UsableBroker> usableBrokers() {
            List<UsableBroker> usable = new ArrayList<>();
            for (JsonNode each : brokers) {
                Optional<String> rack = Optional.ofNullable(each.get("rack").textValue());
                usable.add(new UsableBroker(each.get("id").asInt(), rack, each.get("fenced").asBoolean()));
            }
            return usable.iterator();
        }

        @Override
        public Uuid defaultDir(int brokerId) {
            return Uuid.ZERO_UUID;
        }
    }
}

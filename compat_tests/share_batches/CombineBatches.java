import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.coordinator.share.PersisterStateBatchCombiner;
import org.apache.kafka.server.share.persister.PersisterStateBatch;

/** Reads a question a line, "so far|new|start offset", and prints what is combined; batches are "first,last,state,count;". */
public final class CombineBatches {
    public static void main(String[] arguments) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] question = line.split("\\|", -1);
            long startOffset = Long.parseLong(question[2]);
            for (PersisterStateBatch batch : new PersisterStateBatchCombiner(
                    batches(question[0]), batches(question[1]), startOffset).combineStateBatches()) {
                answers.append(batch.firstOffset()).append(',').append(batch.lastOffset()).append(',')
                    .append(batch.deliveryState()).append(',').append(batch.deliveryCount()).append(';');
            }
            answers.append('\n');
        }
        System.out.print(answers);
    }

    private static List<PersisterStateBatch> batches(String text) {
        List<PersisterStateBatch> batches = new ArrayList<>();
        for (String each : text.split(";")) {
            if (!each.isEmpty()) {
                String[] fields = each.split(",");
                batches.add(new PersisterStateBatch(Long.parseLong(fields[0]), Long.parseLong(fields[1]),
                    Byte.parseByte(fields[2]), Short.parseShort(fields[3])));
            }
        }
        return batches;
    }
}

import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** Counts words: lines in, and for each word how often it has come out. Says on its output which state it is in. */
public class WordCount {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], group = arguments[1], input = arguments[2], output = arguments[3];
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, group);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        properties.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, arguments[5]);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put("auto.offset.reset", "earliest");
        properties.put("statestore.cache.max.bytes", 0);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(input, org.apache.kafka.streams.kstream.Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .to(output, Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setStateListener((now, before) -> say("state " + now));
        streams.setUncaughtExceptionHandler(error -> {
            say("failed " + error);
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        int ignored = System.in.read(); // until its end
        streams.close(java.time.Duration.ofSeconds(20));
        say("closed");
    }

    private static synchronized void say(String words) {
        System.out.println(words);
        System.out.flush();
    }
}

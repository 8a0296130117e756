package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GreetingsTest {
  private static final Duration DEADLINE = Duration.ofSeconds(60);

  @RegisterExtension static final BrokerExtension broker = new BrokerExtension();

  @ParameterizedTest
  @ValueSource(strings = {"classic", "consumer"})
  void aGroupReadsWhatWasProducedAndGoesOnWhereItWas(String protocol) throws Exception {
    String topic = "greetings-" + protocol;
    createTopic(topic);

    produce(topic, "hello", "good morning", "good night");
    assertEquals(List.of("good morning", "good night", "hello"), read(topic, protocol, 3));

    produce(topic, "welcome");
    assertEquals(List.of("welcome"), read(topic, protocol, 1));
  }

  @Test
  void aTransactionThatIsAbortedIsNotRead() throws Exception {
    String topic = "transactions";
    createTopic(topic);
    Map<String, Object> settings =
        Map.of("bootstrap.servers", broker.bootstrapServers(), "transactional.id", "greeter");
    try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
      producer.initTransactions();
      producer.beginTransaction();
      producer.send(new ProducerRecord<>(topic, "lost"));
      producer.flush();
      producer.abortTransaction();
      producer.beginTransaction();
      producer.send(new ProducerRecord<>(topic, "kept"));
      producer.commitTransaction();
    }
    assertEquals(List.of("kept"), read(topic, "consumer", 1));
  }

  private static void createTopic(String name) throws Exception {
    try (var admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
      admin.createTopics(List.of(new NewTopic(name, 3, (short) 1))).all().get();
    }
  }

  private static void produce(String topic, String... values) throws Exception {
    Map<String, Object> settings = Map.of("bootstrap.servers", broker.bootstrapServers());
    try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
      for (String value : values) {
        producer.send(new ProducerRecord<>(topic, value, value)).get();
      }
    }
  }

  /** The next values of the group, sorted: partitions are read in no certain order. */
  private static List<String> read(String topic, String protocol, int count) {
    Map<String, Object> settings =
        Map.of(
            "bootstrap.servers", broker.bootstrapServers(),
            "group.id", "readers-of-" + topic,
            "group.protocol", protocol,
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "isolation.level", "read_committed");
    try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of(topic));
      var values = new ArrayList<String>();
      Instant deadline = Instant.now().plus(DEADLINE);
      while (values.size() < count) {
        assertTrue(Instant.now().isBefore(deadline), "the records do not come");
        consumer.poll(Duration.ofMillis(100)).forEach(each -> values.add(each.value()));
      }
      consumer.commitSync();
      Collections.sort(values);
      return values;
    }
  }
}

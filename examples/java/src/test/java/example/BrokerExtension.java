package example;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A pykbroker for the tests of a class: {@code @RegisterExtension static final BrokerExtension broker = new
 * BrokerExtension();}
 *
 * <p>The broker is a child process. Its standard input is a pipe, as ProcessBuilder makes it: when this virtual machine ends, in
 * whatever way, the broker sees it and ends, too.
 */
final class BrokerExtension implements BeforeAllCallback, AfterAllCallback {
  private static final Duration START_DEADLINE = Duration.ofSeconds(60);
  private static final Duration STOP_DEADLINE = Duration.ofSeconds(20);

  private final List<String> settings;
  private Path directory;
  private Process process;
  private String bootstrapServers;

  /** Settings are properties of the broker, such as {@code "num.partitions=3"}. */
  BrokerExtension(String... settings) {
    this.settings = List.of(settings);
  }

  String bootstrapServers() {
    return bootstrapServers;
  }

  @Override
  public void beforeAll(ExtensionContext context) throws Exception {
    directory = Files.createTempDirectory("broker-");
    Path portFile = directory.resolve("port");
    Path log = directory.resolve("log"); // a pipe that nobody reads would fill up, and hold the broker
    process =
        new ProcessBuilder(command(portFile))
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(log.toFile())
            .start();
    Instant deadline = Instant.now().plus(START_DEADLINE);
    while (!Files.exists(portFile)) { // it appears as a whole
      if (!process.isAlive() || Instant.now().isAfter(deadline)) {
        String lines = Files.readString(log);
        afterAll(context);
        throw new IllegalStateException("pykbroker did not start\n" + lines);
      }
      Thread.sleep(10);
    }
    bootstrapServers = Files.readAllLines(portFile).get(0);
  }

  @Override
  public void afterAll(ExtensionContext context) throws Exception {
    if (process != null) {
      process.destroy(); // SIGTERM
      if (!process.waitFor(STOP_DEADLINE.toSeconds(), TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    }
    try (var paths = Files.walk(directory)) {
      for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(path);
      }
    }
  }

  private List<String> command(Path portFile) throws IOException {
    String program = System.getenv().getOrDefault("PYKBROKER", "pykbroker");
    var command = new ArrayList<>(List.of(program, "start", "--ephemeral", "--dev", "--port", "0"));
    command.addAll(List.of("--port-file", portFile.toString(), "--die-with-parent"));
    settings.forEach(each -> command.addAll(List.of("--override", each)));
    return command;
  }
}

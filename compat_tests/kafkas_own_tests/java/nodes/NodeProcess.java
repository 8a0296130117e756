package nodes;

import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.utils.Utils;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * One node of the broker under test: a process that a test starts, stops and starts again on the same files.
 *
 * <p>The system property {@code nodes.broker} is {@code apache-kafka} or the path of the command {@code pykbroker};
 * {@code nodes.directory} is where the nodes' properties and logs are kept, and {@code nodes.kafka.command} is the
 * command of a node of Apache Kafka up to its properties, an argument a line. What a node does wrong besides its answers
 * (it died, did not stop, printed a traceback) is a line of the test's console that begins with {@link #FAULT}.
 */
public final class NodeProcess {
    private static final String FAULT = "!!!! ";
    private static final String BROKER = System.getProperty("nodes.broker");
    static final boolean IS_KAFKA = "apache-kafka".equals(BROKER);
    private static final String READY = IS_KAFKA ? "Kafka Server started" : "pykbroker ready";
    /** A listener that is added at run time tells its port in the log; Kafka's acceptor tells the port first, then its name. */
    private static final Pattern ADDED_LISTENER = Pattern.compile(IS_KAFKA
        ? "Awaiting socket connections on \\S+:(?<port>\\d+)\\.(?:(?!Awaiting socket)[\\s\\S])*?Created data-plane acceptor and processors for endpoint : ListenerName\\((?<name>[^)]+)\\)"
        : "the listener (?<name>[^:\\s]+)://\\S+ is there, on port (?<port>\\d+),");
    private static final int START_SECONDS = 180;
    private static final int STOP_SECONDS = 60;

    final int id;
    private final Path properties;
    private final Path log;
    private final List<SaslFront> fronts;
    private Process process;
    private int starts;

    /** configuration: is completed. security: what of the configuration it has made; its fronts end with the node. */
    public NodeProcess(int id, String role, Map<String, Object> configuration, ProcessSecurity security) throws IOException {
        this.id = id;
        this.fronts = security.fronts();
        Path directory = Files.createDirectories(Path.of(System.getProperty("nodes.directory"), RunningTest.name()));
        String name = unusedName(directory, role + "-" + id);
        ProcessMetrics.add(configuration);
        this.log = directory.resolve(name + ".log");
        this.properties = directory.resolve(name + ".properties");
        try (PrintWriter out = new PrintWriter(properties.toFile())) {
            new TreeMap<>(configuration).forEach((key, value) -> out.println(key + "=" + text(value).replace("\\", "\\\\").replace("\n", "\\n")));
        }
    }

    /** A test may have several clusters, with the same ids: the second node of a name is "NAME-2". */
    private static String unusedName(Path directory, String name) {
        String found = name;
        for (int n = 2; Files.exists(directory.resolve(found + ".properties")); n++) found = name + "-" + n;
        return found;
    }

    /** The value as it stands in a file: tests also give passwords and classes as objects. */
    static String text(Object value) {
        if (value instanceof Password password) return password.value();
        if (value instanceof Class<?> type) return type.getName();
        return value instanceof Collection<?> many
            ? String.join(",", many.stream().map(Object::toString).toList()) : String.valueOf(value);
    }

    /** Starts the process, and returns before it serves. */
    public synchronized void start() {
        if (isUp()) return;
        starts++;
        try {
            Files.writeString(log, beginning(), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            process = new ProcessBuilder(command()).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
        } catch (IOException e) {
            throw new RuntimeException(e);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
    }

    private String beginning() {
        return "---- start " + starts + "\n";
    }

    private List<String> command() {
        List<String> command = new ArrayList<>();
        if (IS_KAFKA) {
            command.addAll(List.of(System.getProperty("nodes.kafka.command").split("\n")));
            String jaas = System.getProperty("java.security.auth.login.config");
            if (jaas != null) command.add(1, "-Djava.security.auth.login.config=" + jaas);
        } else {
            command.addAll(List.of(BROKER, "start"));
        }
        command.add(properties.toString());
        return command;
    }

    /** Returns when the node says that it is ready. Throws IllegalStateException where it ends instead. */
    void await() {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS);
        while (!isReady()) {
            if (!isUp()) throw new IllegalStateException("node " + id + " did not start: " + lastLine() + " (" + log + ")");
            if (System.nanoTime() > end) {
                throw new IllegalStateException("node " + id + " is not ready after " + START_SECONDS + " s (" + log + ")");
            }
            Waiting.shortly();
        }
    }

    private boolean isReady() {
        return sinceStart().contains(READY);
    }

    private String sinceStart() {
        String said = said();
        return said.substring(said.lastIndexOf(beginning()));
    }

    private String said() {
        try {
            return Files.readString(log, StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            throw new RuntimeException(e);
        }
    }

    /** How many lines of the node's log are of a kind, those of earlier starts included. */
    long lines(Predicate<String> kind) {
        return said().lines().filter(kind).count();
    }

    /** The ports of listeners that the settings of the cluster brought, by name, also of those that are gone again. */
    Map<String, Integer> addedListeners() {
        Map<String, Integer> ports = new HashMap<>();
        Matcher added = ADDED_LISTENER.matcher(process == null ? "" : sinceStart());
        while (added.find()) ports.put(added.group("name").toUpperCase(Locale.ROOT), Integer.parseInt(added.group("port")));
        return ports;
    }

    private String lastLine() {
        String[] lines = said().strip().split("\n");
        return lines[lines.length - 1];
    }

    boolean isUp() {
        return process != null && process.isAlive();
    }

    /** Whether no test has stopped it. */
    boolean isUntouched() {
        return isUp() && starts == 1;
    }

    /** Stops the node as its test asks for it: by SIGTERM, and to the end. */
    public void stop() {
        signal();
        reap();
    }

    /** Sends SIGTERM. A node that ended before it was ready is no fault of its own: its test fails, in {@link #await}. */
    public void signal() {
        if (process == null) return;
        if (!process.isAlive() && isReady()) fault("was dead already, exit status " + process.exitValue());
        process.destroy();
    }

    /** Kills the node where its end is of no interest any more: Apache Kafka's at the end of a test. */
    public void end() {
        for (SaslFront front : fronts) Utils.closeQuietly(front, "front");
        if (IS_KAFKA && process != null) process.destroyForcibly(); else signal();
    }

    /** Waits for the end of a process that has its signal. */
    public void reap() {
        if (process == null) return;
        try {
            if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
                fault("did not stop within " + STOP_SECONDS + " s of SIGTERM");
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            throw new RuntimeException(e);
        }
        process = null;
        if (!IS_KAFKA && sinceStart().contains("Traceback (most recent call last)")) fault("printed a traceback: " + log);
    }

    private void fault(String what) {
        System.out.println(FAULT + RunningTest.name() + " node " + id + " " + what);
    }
}

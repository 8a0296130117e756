package nodes;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The ports of one node by the names of its listeners.
 *
 * <p>Kafka's tests let the broker choose (port 0) and ask its object; a process gets a port that was free a moment ago,
 * of the range that the system properties {@code nodes.first.port} and {@code nodes.ports} give to this JVM alone.
 */
public final class Listeners {
    private static final int FIRST_PORT = Integer.getInteger("nodes.first.port");
    private static final int END_OF_PORTS = FIRST_PORT + Integer.getInteger("nodes.ports");
    private static int nextPort = FIRST_PORT;

    /** Kafka's configuration writes all names in capitals, and a test's need not be. */
    private final Map<String, Integer> ports = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);

    public int port(String listener) {
        return ports.computeIfAbsent(listener, name -> freePort());
    }

    public Map<String, Integer> ports() {
        return ports;
    }

    /** Writes ports into the listeners of a configuration: {@code NAME://host:0} becomes {@code NAME://host:port}. */
    public void fill(Map<String, Object> configuration) {
        for (String key : List.of("listeners", "advertised.listeners")) {
            configuration.computeIfPresent(key, (k, value) -> filled(value.toString()));
        }
    }

    private String filled(String listeners) {
        List<String> filled = new ArrayList<>();
        for (String each : listeners.split(",")) {
            String listener = each.strip();
            String name = listener.substring(0, listener.indexOf("://"));
            int colon = listener.lastIndexOf(':');
            int fixed = Integer.parseInt(listener.substring(colon + 1));
            if (fixed != 0) ports.putIfAbsent(name, fixed);
            filled.add(listener.substring(0, colon + 1) + (fixed != 0 ? fixed : port(name)));
        }
        return String.join(",", filled);
    }

    static synchronized int freePort() {
        while (true) {
            int port = nextPort++;
            if (nextPort == END_OF_PORTS) nextPort = FIRST_PORT;
            try (ServerSocket probe = new ServerSocket()) {
                probe.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                return port;
            } catch (IOException taken) {
                continue;
            }
        }
    }
}

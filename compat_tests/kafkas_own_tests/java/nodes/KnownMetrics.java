package nodes;

import kafka.server.KafkaBroker;

import net.bytebuddy.implementation.bind.annotation.Origin;
import net.bytebuddy.implementation.bind.annotation.RuntimeType;

import java.lang.reflect.Method;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.Predicate;

/**
 * The metrics of a broker that its log tells: how often something happened that is logged each time.
 *
 * <p>The harness has {@code TestUtils.totalMetricValue} ask here ({@link ChangedClasses}). Of any other metric a process
 * has none that a test could read.
 */
public final class KnownMetrics {
    private static final Map<KafkaBroker, NodeProcess> PROCESSES = Collections.synchronizedMap(new WeakHashMap<>());
    private static final String OF_HARNESS = "on listener " + ProcessSecurity.HARNESS;
    private static final Predicate<String> IS_EXPIRED = NodeProcess.IS_KAFKA
        ? line -> line.contains("Disconnecting expired channel")
        : line -> line.contains("the session has expired, and the client has not authenticated again") && !line.contains(OF_HARNESS);
    private static final Predicate<String> IS_REFUSED_AGAIN = NodeProcess.IS_KAFKA
        ? line -> line.contains("Failed re-authentication with")
        : line -> line.contains("re-authentication with ") && line.contains("closed ");
    private static final Predicate<String> IS_REFUSED = NodeProcess.IS_KAFKA
        ? line -> line.contains("Failed authentication with")
        : line -> line.contains(": authentication with ") && line.contains(" failed: ");

    private KnownMetrics() { }

    /** In the place of what looks for a metric among those of the JVM. */
    public static final class OfJvm {
        private OfJvm() { }

        @RuntimeType
        public static Object find(@Origin Method reader) {
            throw RunningTest.needs("the metrics that " + reader.getName() + " looks for in the JVM");
        }
    }

    static void add(KafkaBroker broker, NodeProcess process) {
        PROCESSES.put(broker, process);
    }

    /** In the place of {@code TestUtils.totalMetricValue}. */
    public static long total(KafkaBroker broker, String metric) {
        NodeProcess process = PROCESSES.get(broker);
        return switch (metric) {
            case "expired-connections-killed-count" -> process.lines(IS_EXPIRED);
            case "failed-reauthentication-total" -> process.lines(IS_REFUSED_AGAIN);
            case "failed-authentication-total" -> process.lines(IS_REFUSED);
            default -> throw RunningTest.needs("the metric " + metric);
        };
    }
}

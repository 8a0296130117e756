package nodes;

import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;

import java.util.Map;
import java.util.stream.Stream;

/**
 * What a process shows over HTTP.
 *
 * <p>Clients' metrics go to a page of pykbroker, and at Kafka to a reporter, a class of the test's own: a node whose
 * properties name one has the page, and no other node has any, so that none offers telemetry by chance of a free port.
 */
final class ProcessMetrics {
    private ProcessMetrics() { }

    static void add(Map<String, Object> properties) {
        if (NodeProcess.IS_KAFKA) return;
        properties.put("console.listener", "");
        Object reporters = properties.get("metric.reporters");
        boolean isTaken = reporters != null && Stream.of(NodeProcess.text(reporters).split("\\s*,\\s*")).anyMatch(ProcessMetrics::takesMetrics);
        if (isTaken) properties.put("metrics.listener", "127.0.0.1:" + Listeners.freePort());
    }

    @SuppressWarnings("deprecation")  // the first of the two is what reporters implemented before
    private static boolean takesMetrics(String name) {
        try {
            Class<?> type = Class.forName(name, false, ProcessMetrics.class.getClassLoader());
            return ClientTelemetry.class.isAssignableFrom(type) || ClientTelemetryExporterProvider.class.isAssignableFrom(type);
        } catch (ClassNotFoundException unknown) {
            return false;
        }
    }
}

package nodes;

import kafka.api.QuotaTestClients;

import net.bytebuddy.implementation.bind.annotation.Argument;
import net.bytebuddy.implementation.bind.annotation.This;

import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.quota.QuotaType;

import java.util.Map;

/**
 * In the place of what a broker's metrics say of throttled clients: what the broker has told these very clients.
 *
 * <p>Their own metrics have the throttle times of the answers that came. The harness has Kafka's {@code QuotaTestClients}
 * ask here ({@link ChangedClasses}).
 */
public final class KnownThrottling {
    private KnownThrottling() { }

    public static KafkaMetric throttleMetric(@This QuotaTestClients clients, @Argument(0) QuotaType type) {
        double ms = type == QuotaType.PRODUCE ? ofProducer(clients) : ofConsumer(clients);
        // A broker's metric is there, and has no value, where nobody was throttled.
        Measurable value = (config, now) -> ms > 0 ? ms : Double.NaN;
        return new KafkaMetric(new Object(), new MetricName("throttle-time", type.toString(), "", Map.of()), value,
            new MetricConfig(), Time.SYSTEM);
    }

    public static double brokerRequestMetricsThrottleTimeMs(@This QuotaTestClients clients, @Argument(0) ApiKeys api) {
        return Math.max(0, api == ApiKeys.PRODUCE ? ofProducer(clients) : ofConsumer(clients));
    }

    public static KafkaMetric exemptRequestMetric() {
        throw RunningTest.needs("the metric exempt-request-time");
    }

    private static double ofProducer(QuotaTestClients clients) {
        return longest(clients.producer().metrics(), "produce-throttle-time-max");
    }

    private static double ofConsumer(QuotaTestClients clients) {
        return longest(clients.consumer().metrics(), "fetch-throttle-time-max");
    }

    private static double longest(Map<MetricName, ? extends Metric> metrics, String name) {
        return metrics.entrySet().stream().filter(each -> each.getKey().name().equals(name))
            .mapToDouble(each -> (Double) each.getValue().metricValue()).filter(ms -> !Double.isNaN(ms)).max().orElse(0);
    }
}

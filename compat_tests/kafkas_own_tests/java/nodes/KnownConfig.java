package nodes;

import kafka.server.KafkaConfig;

import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.common.config.ConfigResource;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The configuration of a broker: what its properties say and, where a method is here, what the broker was told at run time. */
final class KnownConfig extends KafkaConfig {
    private static final Set<ConfigSource> AT_RUN_TIME = Set.of(ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG);

    private final NodeProcess process;
    private final KnownSecurity known;

    /** port: of the listener that the broker is asked on. */
    KnownConfig(Map<String, Object> properties, NodeProcess process, int port) {
        super(properties, false);
        this.process = process;
        this.known = new KnownSecurity(port);
    }

    /** Passwords that were set at run time are told to nobody, and left out. */
    @Override
    public Map<String, Object> originals() {
        if (known == null || !process.isUp()) return super.originals();  // KafkaConfig asks while it is made
        Map<String, Object> all = new HashMap<>(super.originals());
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, Integer.toString(process.id));
        known.ask(admin -> admin.describeConfigs(List.of(broker)).all()).get(broker).entries().stream()
            .filter(entry -> AT_RUN_TIME.contains(entry.source()) && entry.value() != null)
            .forEach(entry -> all.put(entry.name(), entry.value()));
        return all;
    }

    @Override
    public Map<String, ?> values() {
        return known == null || !process.isUp() ? super.values() : told().values();
    }

    @Override
    public Map<String, Object> extractLogConfigMap() {
        return told().extractLogConfigMap();
    }

    private KafkaConfig told() {
        return new KafkaConfig(originals(), false);
    }
}

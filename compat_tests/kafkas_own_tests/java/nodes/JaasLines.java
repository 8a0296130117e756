package nodes;

import org.apache.kafka.common.security.JaasUtils;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;

import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;

/**
 * The sections of this JVM's JAAS file as lines of a node's properties, one for a listener and a mechanism.
 *
 * <p>A section {@code name.KafkaServer} is of one listener, {@code KafkaServer} of the others. A node of Apache Kafka
 * reads the file itself.
 */
final class JaasLines {
    private static final Map<String, String> MODULES = Map.of("PLAIN", "PlainLoginModule", "SCRAM-SHA-256", "ScramLoginModule",
        "SCRAM-SHA-512", "ScramLoginModule", "OAUTHBEARER", "OAuthBearerLoginModule", "GSSAPI", "Krb5LoginModule");

    private JaasLines() { }

    /** listeners: those with SASL, and the mechanisms that are used on each. Lines that are given already stay. */
    static void add(Map<String, Object> properties, Map<String, List<String>> listeners) {
        if (System.getProperty(JaasUtils.JAVA_LOGIN_CONFIG_PARAM) == null) return;
        listeners.forEach((listener, mechanisms) -> mechanisms.forEach(mechanism ->
            entry(listener, mechanism).ifPresent(entry -> properties.putIfAbsent(key(listener, mechanism), line(entry)))));
    }

    static String key(String listener, String mechanism) {
        return prefix(listener) + mechanism.toLowerCase(Locale.ROOT) + ".sasl.jaas.config";
    }

    static String prefix(String listener) {
        return "listener.name." + listener.toLowerCase(Locale.ROOT) + ".";
    }

    private static Optional<AppConfigurationEntry> entry(String listener, String mechanism) {
        Configuration file = Configuration.getConfiguration();
        AppConfigurationEntry[] own = file.getAppConfigurationEntry(listener.toLowerCase(Locale.ROOT) + ".KafkaServer");
        AppConfigurationEntry[] section = own != null ? own : file.getAppConfigurationEntry("KafkaServer");
        if (section == null) return Optional.empty();
        return Stream.of(section).filter(e -> e.getLoginModuleName().endsWith("." + MODULES.get(mechanism))).findFirst();
    }

    private static String line(AppConfigurationEntry entry) {
        Map<String, String> options = new HashMap<>();
        entry.getOptions().forEach((name, value) -> options.put(name, value.toString()));
        return line(entry.getLoginModuleName(), options);
    }

    static String line(String module, Map<String, String> options) {
        StringBuilder line = new StringBuilder(module).append(" required");
        new TreeMap<>(options).forEach((name, value) -> line.append(' ').append(name).append("=\"")
            .append(value.replace("\\", "\\\\").replace("\"", "\\\"")).append('"'));
        return line.append(';').toString();
    }
}

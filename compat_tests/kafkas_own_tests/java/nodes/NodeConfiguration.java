package nodes;

import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.TestKitNode;
import org.apache.kafka.common.test.TestKitNodes;
import org.apache.kafka.common.test.api.TestKitDefaults;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.MetaPropertiesEnsemble;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.raft.DynamicVoters;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** The configuration and the formatted directories of the nodes of one cluster, as Kafka's own test kit makes them. */
public final class NodeConfiguration {
    private final TestKitNodes nodes;
    private final Map<String, Object> common;
    private final boolean isStandalone;
    private final Optional<Map<Integer, Uuid>> initialVoters;
    private final Map<Integer, Listeners> listeners = new TreeMap<>();

    /** common: what the test configures for all nodes. isStandalone, initialVoters: a dynamic quorum (KIP-853). */
    public NodeConfiguration(TestKitNodes nodes, Map<String, Object> common, boolean isStandalone,
                             Optional<Map<Integer, Uuid>> initialVoters) {
        this.nodes = nodes;
        this.common = common;
        this.isStandalone = isStandalone;
        this.initialVoters = initialVoters;
    }

    public Listeners listeners(int id) {
        return listeners.computeIfAbsent(id, i -> new Listeners());
    }

    public String roles(int id) {
        if (nodes.isCombined(id)) return "broker,controller";
        return nodes.controllerNodes().containsKey(id) ? "controller" : "broker";
    }

    /** What the tests' clusters have in common where one of them can serve both. */
    public String key() {
        Map<Integer, Object> own = new TreeMap<>();
        nodes.brokerNodes().forEach((id, n) -> own.put(id, List.of(new TreeMap<>(n.propertyOverrides()), n.logDataDirectories().size())));
        nodes.controllerNodes().forEach((id, n) -> own.merge(id, List.of(new TreeMap<>(n.propertyOverrides())), (a, b) -> a + "+" + b));
        return String.join(" ", new TreeMap<>(common).toString(), own.toString(), nodes.brokerListenerName().toString(),
            nodes.brokerListenerProtocol().toString(), nodes.controllerListenerName().toString(),
            nodes.controllerListenerProtocol().toString(), String.valueOf(isStandalone), initialVoters.toString(),
            nodes.bootstrapMetadata().toString());
    }

    /** The properties of one node: those of KafkaClusterTestKit.Builder.createNodeConfig; ports may be 0. */
    public Map<String, Object> properties(int id) {
        TestKitNode broker = nodes.brokerNodes().get(id);
        TestKitNode controller = nodes.controllerNodes().get(id);
        Map<String, Object> props = new HashMap<>(common);
        props.put("server.max.startup.time.ms", "600000");
        props.put("process.roles", roles(id));
        props.put("node.id", Integer.toString(id));
        props.put("metadata.log.dir", (controller != null ? controller : broker).metadataDirectory());
        props.put("log.dirs", broker != null ? String.join(",", broker.logDataDirectories()) : controller.metadataDirectory());
        if (controller != null) addSecurity(props, nodes.controllerListenerProtocol());
        if (broker != null) addSecurity(props, nodes.brokerListenerProtocol());
        addListeners(props, broker != null, controller != null);
        addQuorum(props);
        props.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152");
        if (broker != null) {
            props.remove("controller.quorum.auto.join.enable");
            props.putAll(broker.propertyOverrides());
        }
        if (controller != null) props.putAll(controller.propertyOverrides());
        props.putIfAbsent("unstable.feature.versions.enable", "true");
        // Kafka's kit says "true": versions under construction are not what a released broker is measured by.
        props.putIfAbsent("unstable.api.versions.enable", "false");
        return props;
    }

    /** The same with the ports that the node's process listens on. */
    public Map<String, Object> propertiesWithPorts(int id) {
        Map<String, Object> props = properties(id);
        listeners(id).fill(props);
        return props;
    }

    private void addListeners(Map<String, Object> props, boolean isBroker, boolean isController) {
        String brokers = nodes.brokerListenerName().value();
        String controllers = nodes.controllerListenerName().value();
        props.putIfAbsent("listener.security.protocol.map", brokers + ":" + nodes.brokerListenerProtocol().name + ","
            + controllers + ":" + nodes.controllerListenerProtocol().name);
        List<String> own = new ArrayList<>();
        if (isBroker) own.add(brokers + "://localhost:0");
        if (isController) own.add(controllers + "://localhost:0");
        props.putIfAbsent("listeners", String.join(",", own));
        props.putIfAbsent("inter.broker.listener.name", brokers);
        props.putIfAbsent("controller.listener.names", controllers);
    }

    private void addQuorum(Map<String, Object> props) {
        boolean isDynamic = isStandalone || initialVoters.isPresent();
        props.put(isDynamic ? "controller.quorum.bootstrap.servers" : "controller.quorum.voters",
            nodes.controllerNodes().keySet().stream().map(c -> (isDynamic ? "" : c + "@") + "localhost:" + controllerPort(c))
                .collect(Collectors.joining(",")));
    }

    private int controllerPort(int id) {
        return listeners(id).port(nodes.controllerListenerName().value());
    }

    private static void addSecurity(Map<String, Object> props, SecurityProtocol protocol) {
        if (protocol != SecurityProtocol.SASL_PLAINTEXT) return;
        props.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
        props.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
        props.putIfAbsent("sasl.mechanism.controller.protocol", "PLAIN");
        props.putIfAbsent("authorizer.class.name", StandardAuthorizer.class.getName());
        props.putIfAbsent("allow.everyone.if.no.acl.found", "false");
        props.putIfAbsent("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
    }

    /**
     * Formats the directories of a node with Kafka's own formatter.
     *
     * <p>Tests format by default with a metadata.version that is not released, and some with one since 4.0, for a
     * feature that came with it: all of them get the latest one that is released.
     */
    public void format(int id) throws Exception {
        boolean isController = nodes.controllerNodes().containsKey(id);
        TestKitNode node = isController ? nodes.controllerNodes().get(id) : nodes.brokerNodes().get(id);
        MetaPropertiesEnsemble ensemble = node.initialMetaPropertiesEnsemble();
        Set<String> directories = new TreeSet<>(ensemble.logDirProps().keySet());
        if (nodes.isCombined(id)) directories.addAll(nodes.brokerNodes().get(id).logDataDirectories());
        Formatter formatter = new Formatter();
        formatter.setNodeId(id);
        formatter.setClusterId(nodes.clusterId());
        formatter.setDirectories(directories);
        formatter.setMetadataLogDirectory(ensemble.metadataLogDir().get());
        formatter.setControllerListenerName(nodes.controllerListenerName().value());
        formatter.setUnstableFeatureVersionsEnabled(true);
        formatter.setIgnoreFormatted(false);
        setFeatures(formatter);
        setVoters(formatter, id);
        formatter.setPrintStream(new PrintStream(OutputStream.nullOutputStream()));
        formatter.run();
        nameDirectories(ensemble);
    }

    /** A node of Kafka's kit has the directory ids that tests know it by, whatever the formatter has written. */
    private static void nameDirectories(MetaPropertiesEnsemble named) throws IOException {
        MetaPropertiesEnsemble written = new MetaPropertiesEnsemble.Loader().addLogDirs(named.logDirProps().keySet())
            .addMetadataLogDir(named.metadataLogDir().get()).load();
        MetaPropertiesEnsemble.Copier copier = new MetaPropertiesEnsemble.Copier(written);
        named.logDirProps().forEach((directory, properties) -> properties.directoryId().ifPresent(id ->
            copier.setLogDirProps(directory, new MetaProperties.Builder(written.logDirProps().get(directory)).setDirectoryId(id).build())));
        copier.writeLogDirChanges();
    }

    private void setFeatures(Formatter formatter) {
        BootstrapMetadata wanted = nodes.bootstrapMetadata();
        MetadataVersion released = MetadataVersion.latestProduction();
        boolean isNew = wanted.metadataVersion().isAtLeast(MetadataVersion.IBP_4_0_IV0);
        MetadataVersion version = isNew ? released : wanted.metadataVersion();
        formatter.setReleaseVersion(version);
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            short level = wanted.featureLevel(feature.featureName());
            if (!feature.featureName().equals("kraft.version") && level != feature.defaultLevel(version)) {
                formatter.setFeatureLevel(feature.featureName(), level);
            }
        }
    }

    private void setVoters(Formatter formatter, int id) {
        if (!isStandalone && initialVoters.isEmpty()) return;
        formatter.setHasDynamicQuorum(true);
        int first = TestKitDefaults.BROKER_ID_OFFSET + TestKitDefaults.CONTROLLER_ID_OFFSET;
        if (isStandalone && id != first) return;
        Map<Integer, Uuid> voters = isStandalone
            ? Map.of(id, nodes.controllerNodes().get(id).metadataDirectoryId()) : initialVoters.get();
        formatter.setInitialControllers(DynamicVoters.parse(voters.entrySet().stream()
            .map(e -> e.getKey() + "@localhost:" + controllerPort(e.getKey()) + ":" + e.getValue())
            .collect(Collectors.joining(","))));
    }
}

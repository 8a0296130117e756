package org.apache.kafka.common.test;

import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;

import nodes.NodeConfiguration;
import nodes.NodeObjects;
import nodes.NodeProcess;
import nodes.ProcessSecurity;
import nodes.ReusedCluster;

import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.server.common.ApiMessageAndVersion;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;

/**
 * Stands before Kafka's class of the same name on the class path: its nodes are processes of the broker under test.
 *
 * <p>With the system property {@code nodes.reuse}, a test that asks for the configuration of one before it has that
 * test's cluster, emptied ({@link ReusedCluster}). Two wait at most: tests often alternate between two configurations.
 * None waits whose files its test wants when it is closed.
 */
public class KafkaClusterTestKit implements AutoCloseable {
    private static final boolean REUSE = Boolean.getBoolean("nodes.reuse");
    private static final int MOST_IDLE = 2;
    private static final Map<String, KafkaClusterTestKit> IDLE = new LinkedHashMap<>();

    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, Object> configProps = new HashMap<>();
        private boolean standalone;
        private Optional<Map<Integer, Uuid>> initialVoterSet = Optional.empty();
        private boolean deleteOnClose = true;

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String key, Object value) {
            configProps.put(key, value);
            return this;
        }

        public Builder setStandalone(boolean standalone) {
            this.standalone = standalone;
            return this;
        }

        public Builder setInitialVoterSet(Map<Integer, Uuid> initialVoterSet) {
            this.initialVoterSet = Optional.of(initialVoterSet);
            return this;
        }

        public Builder setDeleteOnClose(boolean deleteOnClose) {
            this.deleteOnClose = deleteOnClose;
            return this;
        }

        public KafkaClusterTestKit build() throws Exception {
            NodeConfiguration configuration = new NodeConfiguration(nodes, configProps, standalone, initialVoterSet);
            KafkaClusterTestKit waiting = deleteOnClose ? IDLE.remove(configuration.key()) : null;
            if (waiting != null) {
                waiting.isReused = true;
                return waiting;
            }
            return new KafkaClusterTestKit(nodes, configuration, deleteOnClose, writeJaas());
        }

        private Optional<File> writeJaas() throws Exception {
            if (nodes.brokerListenerProtocol() != SecurityProtocol.SASL_PLAINTEXT) return Optional.empty();
            Map<String, String> users = Map.of(JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD,
                JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD);
            JaasModule module = JaasModule.plainLoginModule(JaasUtils.KAFKA_PLAIN_ADMIN,
                JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD, true, users);
            File file = JaasUtils.writeJaasContextsToFile(
                Set.of(new JaasUtils.JaasSection(JaasUtils.KAFKA_SERVER_CONTEXT_NAME, List.of(module))));
            JaasUtils.refreshJavaLoginConfigParam(file);
            return Optional.of(file);
        }
    }

    private final TestKitNodes nodes;
    private final NodeConfiguration configuration;
    private final boolean deleteOnClose;
    private final Optional<File> jaas;
    private final Map<Integer, NodeProcess> processes = new TreeMap<>();
    private final Map<Integer, ControllerServer> controllers = new HashMap<>();
    private final Map<Integer, BrokerServer> brokers = new HashMap<>();
    private final Map<Integer, Integer> askedPorts = new TreeMap<>();
    private final MockFaultHandler fatalFaultHandler = new MockFaultHandler("fatalFaultHandler");
    private final MockFaultHandler nonFatalFaultHandler = new MockFaultHandler("nonFatalFaultHandler");
    private boolean isReused;

    private KafkaClusterTestKit(TestKitNodes nodes, NodeConfiguration configuration, boolean deleteOnClose,
                                Optional<File> jaas) throws Exception {
        this.nodes = nodes;
        this.configuration = configuration;
        this.deleteOnClose = deleteOnClose;
        this.jaas = jaas;
        Files.createDirectories(Paths.get(nodes.baseDirectory()));
        Map<Integer, TestKitNode> all = new TreeMap<>(nodes.brokerNodes());
        all.putAll(nodes.controllerNodes());
        for (TestKitNode node : all.values()) add(node);
    }

    private void add(TestKitNode node) throws Exception {
        int id = node.id();
        // Kafka's kit makes the directories of controllers, and the formatter those of brokers.
        Files.createDirectories(Paths.get(node.metadataDirectory()));
        Map<String, Object> properties = configuration.propertiesWithPorts(id);
        ProcessSecurity security = new ProcessSecurity(properties, configuration.listeners(id), true, nodes.brokerListenerName().value());
        NodeProcess process = new NodeProcess(id, configuration.roles(id).replace(',', '-'), properties, security);
        processes.put(id, process);
        NodeObjects objects = new NodeObjects(process, new KafkaConfig(configuration.properties(id), false), nodes.clusterId(),
            configuration.listeners(id).ports());
        if (nodes.controllerNodes().containsKey(id)) controllers.put(id, objects.controller(nodes.isCombined(id), () -> askedPorts.values().iterator().next()));
        if (!nodes.brokerNodes().containsKey(id)) return;
        askedPorts.put(id, configuration.listeners(id).port(security.asked()));
        brokers.put(id, objects.broker(security.asked()));
    }

    public void format() throws Exception {
        if (isReused) return;
        for (int id : processes.keySet()) configuration.format(id);
    }

    /** Starts all processes before it waits for any: controllers, and brokers and controllers, wait for each other. */
    public void startup() throws ExecutionException, InterruptedException {
        if (isReused) return;
        processes.values().forEach(NodeProcess::start);
        ExecutorService executor = Executors.newFixedThreadPool(controllers.size() + brokers.size(),
            new KafkaClusterThreadFactory("kafka-cluster-test-kit-"));
        try {
            List<Future<?>> futures = new ArrayList<>();
            controllers.values().forEach(c -> futures.add(executor.submit(c::startup)));
            brokers.values().forEach(b -> futures.add(executor.submit(b::startup)));
            for (Future<?> future : futures) future.get();
        } finally {
            executor.shutdownNow();
        }
    }

    public void waitForReadyBrokers() throws ExecutionException, InterruptedException {
        TestUtils.waitForCondition(() -> brokers.values().stream().map(BrokerServer::metadataCache)
            .allMatch(cache -> brokers.keySet().stream().allMatch(cache::hasAliveBroker)), "not every broker knows every broker");
    }

    public Admin admin() {
        return admin(Map.of(), false);
    }

    public Admin admin(Map<String, Object> configs) {
        return admin(configs, false);
    }

    public Admin admin(Map<String, Object> configs, boolean usingBootstrapControllers) {
        Map<String, Object> props = new HashMap<>(configs);
        if (usingBootstrapControllers) {
            props.putIfAbsent(AdminClientConfig.BOOTSTRAP_CONTROLLERS_CONFIG, bootstrapControllers());
            props.remove(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG);
        } else {
            props.putIfAbsent(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers());
            props.remove(AdminClientConfig.BOOTSTRAP_CONTROLLERS_CONFIG);
        }
        SecurityProtocol protocol = usingBootstrapControllers ? nodes.controllerListenerProtocol() : nodes.brokerListenerProtocol();
        props.putIfAbsent(CommonClientConfigs.SECURITY_PROTOCOL_CONFIG, protocol.name);
        if (protocol == SecurityProtocol.SASL_PLAINTEXT) {
            props.putIfAbsent(SaslConfigs.SASL_MECHANISM, "PLAIN");
            props.putIfAbsent(SaslConfigs.SASL_JAAS_CONFIG, String.format(
                "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"%s\" password=\"%s\";",
                JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD));
        }
        return Admin.create(props);
    }

    public String bootstrapServers() {
        ListenerName listener = ListenerName.normalised(nodes.brokerListenerName().value());
        return brokers.values().stream().map(b -> "localhost:" + b.boundPort(listener)).collect(Collectors.joining(","));
    }

    public String bootstrapControllers() {
        ListenerName listener = nodes.controllerListenerName();
        return controllers.values().stream().map(c -> "localhost:" + c.socketServer().boundPort(listener))
            .collect(Collectors.joining(","));
    }

    public Map<Integer, ControllerServer> controllers() {
        return controllers;
    }

    public Controller waitForActiveController() {
        return controllers.values().iterator().next().controller();
    }

    public Map<Integer, BrokerServer> brokers() {
        return brokers;
    }

    public Map<Integer, KafkaRaftManager<ApiMessageAndVersion>> raftManagers() {
        Map<Integer, KafkaRaftManager<ApiMessageAndVersion>> managers = new HashMap<>();
        brokers.forEach((id, broker) -> managers.put(id, broker.sharedServer().raftManager()));
        controllers.forEach((id, controller) -> managers.putIfAbsent(id, controller.raftManager()));
        return managers;
    }

    public TestKitNodes nodes() {
        return nodes;
    }

    public MockFaultHandler fatalFaultHandler() {
        return fatalFaultHandler;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return nonFatalFaultHandler;
    }

    @Override
    public void close() throws Exception {
        if (!REUSE || !deleteOnClose || !ReusedCluster.empty(processes.values(), this)) {
            end();
            return;
        }
        KafkaClusterTestKit same = IDLE.put(configuration.key(), this);
        if (same != null) same.end();
        if (IDLE.size() > MOST_IDLE) IDLE.remove(IDLE.keySet().iterator().next()).end();
    }

    /** Ends the clusters that no test asks for any more. */
    public static void endIdle() throws Exception {
        for (KafkaClusterTestKit each : IDLE.values()) each.end();
        IDLE.clear();
    }

    /** Brokers end before controllers, as in Kafka's kit: their controlled shutdown needs a quorum. */
    private void end() throws Exception {
        for (boolean isController : new boolean[] {false, true}) {
            List<NodeProcess> ending = processes.entrySet().stream()
                .filter(e -> controllers.containsKey(e.getKey()) == isController).map(Map.Entry::getValue).toList();
            ending.forEach(NodeProcess::end);
            ending.forEach(NodeProcess::reap);
        }
        if (deleteOnClose) {
            Utils.delete(new File(nodes.baseDirectory()));
            if (jaas.isPresent()) Utils.delete(jaas.get());
        }
    }
}

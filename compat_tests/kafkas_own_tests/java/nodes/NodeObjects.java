package nodes;

import kafka.network.SocketServer;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.SharedServer;

import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.controller.QuorumController;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.server.BrokerLifecycleManager;
import org.apache.kafka.server.authorizer.Authorizer;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntSupplier;
import java.util.function.Predicate;
import scala.Option;

/** The objects by which Kafka's tests see a broker or a controller, for a node that is a process. */
public final class NodeObjects {
    private final NodeProcess process;
    private final KafkaConfig config;
    private final String clusterId;
    private final Map<String, Integer> ports;

    /** ports: by the name of the listener. */
    public NodeObjects(NodeProcess process, KafkaConfig config, String clusterId, Map<String, Integer> ports) {
        this.process = process;
        this.config = config;
        this.clusterId = clusterId;
        this.ports = ports;
    }

    /** listener: the one that the broker's own answers are asked on. */
    public BrokerServer broker(String listener) {
        return broker(listener, token -> true);
    }

    /** isKnown: of a token's id, whether the controller knows it, which may be later than brokers: it is asked next. */
    public BrokerServer broker(String listener, Predicate<String> isKnown) {
        KnownMetadata known = new KnownMetadata(ports.get(listener));
        Map<String, Stand.Method> m = common();
        KnownConfig toldConfig = new KnownConfig(config.originals(), process, ports.get(listener));
        m.put("config", a -> toldConfig);
        var cache = known.cache();
        KnownQuotas quotas = new KnownQuotas(ports.get(listener));
        SocketServer sockets = Stand.in(SocketServer.class, Map.of("boundPort", this::boundPort,
            "connectionCount", a -> KnownConnections.count(allPorts().values()), "connectionQuotas", a -> quotas.ofAddresses()));
        m.put("socketServer", a -> sockets);
        m.put("boundPort", this::boundPort);
        m.put("metadataCache", a -> cache);
        KnownQuorum quorum = new KnownQuorum(ports.get(listener));
        m.put("sharedServer", a -> sharedServer(known, quorum));
        m.put("quotaManagers", a -> quotas.managers());
        m.put("dataPlaneRequestProcessor", a -> Stand.in(KafkaApis.class, Map.of(
            "brokerId", b -> config.brokerId(), "metadataCache", b -> cache,
            "authorizerPlugin", b -> authorizerPlugin(ports.get(listener)), "quotas", b -> quotas.managers(),
            "isConsumerGroupProtocolEnabled", b -> known.groupVersion() > 0)));
        KnownReplicas replicas = new KnownReplicas(process, config, ports.get(listener), known);
        m.put("logManager", a -> replicas.logManager());
        m.put("replicaManager", a -> replicas.replicaManager(cache));
        m.put("groupCoordinator", a -> groupCoordinator());
        // A node says that it is ready when it is unfenced, and its start has waited for that.
        m.put("lifecycleManager", a -> Stand.in(BrokerLifecycleManager.class, Map.of(
            "initialUnfenceFuture", b -> CompletableFuture.completedFuture(null))));
        m.put("isShutdown", a -> !process.isUp());
        m.put("brokerState", a -> process.isUp() ? BrokerState.RUNNING : BrokerState.NOT_RUNNING);
        m.put("authorizerPlugin", a -> authorizerPlugin(ports.get(listener)));
        m.put("tokenCache", a -> new KnownSecurity(ports.get(listener)).tokenCache(isKnown));
        m.put("credentialProvider", a -> new KnownSecurity(ports.get(listener)).credentialProvider());
        m.put("startup", a -> start(true));
        m.put("awaitShutdown", a -> null);
        BrokerServer broker = Stand.in(BrokerServer.class, "broker " + process.id, m);
        KnownMetrics.add(broker, process);
        return broker;
    }

    /** isCombined: the broker of the same process is waited for, and the controller is not. port: of a broker to ask. */
    public ControllerServer controller(boolean isCombined, IntSupplier port) {
        Map<String, Stand.Method> m = common();
        KnownQuorum quorum = new KnownQuorum(ports.getOrDefault(config.controllerListenerNames().get(0), -1));
        m.put("controller", a -> Stand.in(QuorumController.class, Map.of(
            "waitForReadyBrokers", b -> CompletableFuture.completedFuture(null), "isActive", b -> quorum.isLeader(),
            "findAllTopicIds", b -> CompletableFuture.completedFuture(new KnownMetadata(port.getAsInt()).topicIds()))));
        m.put("raftManager", a -> quorum.raftManager());
        m.put("authorizerPlugin", a -> authorizerPlugin(port.getAsInt()));
        m.put("startup", a -> start(!isCombined));
        return Stand.in(ControllerServer.class, "controller " + process.id, m);
    }

    private Map<String, Stand.Method> common() {
        SocketServer sockets = Stand.in(SocketServer.class, Map.of("boundPort", this::boundPort));
        Map<String, Stand.Method> m = new HashMap<>();
        m.put("config", a -> config);
        m.put("clusterId", a -> clusterId);
        m.put("socketServer", a -> sockets);
        m.put("shutdown", a -> {
            process.stop();
            return null;
        });
        return m;
    }

    private Option<Plugin<Authorizer>> authorizerPlugin(int port) {
        return config.originals().get("authorizer.class.name") == null ? Option.empty()
            : Option.apply(new KnownSecurity(port).authorizerPlugin());
    }

    private Object start(boolean isAwaited) {
        process.start();
        if (isAwaited) StartedTogether.await(process);
        return null;
    }

    private Object boundPort(Object[] arguments) {
        String listener = ((ListenerName) arguments[0]).value();
        Integer port = ports.get(listener);  // of a listener that is there from the start on, no log need be read
        return port != null ? port : allPorts().getOrDefault(listener, -1);
    }

    private Map<String, Integer> allPorts() {
        Map<String, Integer> all = new HashMap<>(process.addedListeners());
        all.putAll(ports);
        return all;
    }

    /** A broker that is stopped has no loader: whoever waits for all brokers does not wait for it. */
    private SharedServer sharedServer(KnownMetadata known, KnownQuorum quorum) {
        MetadataLoader loader = Stand.in(MetadataLoader.class, Map.of("lastAppliedOffset", a -> known.lastAppliedOffset()));
        return Stand.in(SharedServer.class, Map.of("loader", a -> process.isUp() ? loader : null, "raftManager", a -> quorum.raftManager()));
    }

    private GroupCoordinator groupCoordinator() {
        Properties topic = new Properties();
        topic.put("cleanup.policy", "compact");
        topic.put("compression.type", "producer");
        topic.put("segment.bytes", Integer.toString(config.groupCoordinatorConfig().offsetsTopicSegmentBytes()));
        return Stand.in(GroupCoordinator.class, Map.of("groupMetadataTopicConfigs", a -> topic));
    }
}

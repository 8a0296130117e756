package kafka.server;

import kafka.utils.Logging;

import nodes.Listeners;
import nodes.NodeObjects;
import nodes.NodeProcess;
import nodes.ProcessSecurity;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.MetaPropertiesEnsemble;
import org.apache.kafka.metadata.properties.MetaPropertiesVersion;
import org.apache.kafka.server.fault.FaultHandler;

import java.io.File;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import scala.Option;

/**
 * Stands before Kafka's class of the same name on the class path, behind QuorumTestHarness and all that is based on it.
 *
 * <p>The controller stays Apache Kafka's own, in the JVM of the tests; brokers are processes of the broker under test.
 */
public class KRaftQuorumImplementation implements QuorumImplementation {
    private final ControllerServer controllerServer;
    private final FaultHandlerFactory faultHandlerFactory;
    private final File metadataDir;
    private final CompletableFuture<Map<Integer, InetSocketAddress>> controllerQuorumVotersFuture;
    private final String clusterId;
    private final Logging log;
    private final FaultHandler faultHandler;
    private final List<NodeProcess> processes = new ArrayList<>();

    public KRaftQuorumImplementation(ControllerServer controllerServer, FaultHandlerFactory faultHandlerFactory,
                                     File metadataDir,
                                     CompletableFuture<Map<Integer, InetSocketAddress>> controllerQuorumVotersFuture,
                                     String clusterId, Logging log, FaultHandler faultHandler) {
        this.controllerServer = controllerServer;
        this.faultHandlerFactory = faultHandlerFactory;
        this.metadataDir = metadataDir;
        this.controllerQuorumVotersFuture = controllerQuorumVotersFuture;
        this.clusterId = clusterId;
        this.log = log;
        this.faultHandler = faultHandler;
    }

    public ControllerServer controllerServer() {
        return controllerServer;
    }

    public FaultHandlerFactory faultHandlerFactory() {
        return faultHandlerFactory;
    }

    public File metadataDir() {
        return metadataDir;
    }

    public CompletableFuture<Map<Integer, InetSocketAddress>> controllerQuorumVotersFuture() {
        return controllerQuorumVotersFuture;
    }

    public String clusterId() {
        return clusterId;
    }

    public Logging log() {
        return log;
    }

    public FaultHandler faultHandler() {
        return faultHandler;
    }

    @Override
    public KafkaBroker createBroker(KafkaConfig config, Time time, boolean startup, Option<String> threadNamePrefix) {
        try {
            format(config);
            Map<String, Object> properties = new HashMap<>(config.originals());
            properties.put("controller.quorum.voters", voters());
            Listeners listeners = new Listeners();
            listeners.fill(properties);
            ProcessSecurity security = new ProcessSecurity(properties, listeners, false, config.interBrokerListenerName().value());
            NodeProcess process = new NodeProcess(config.nodeId(), "broker", properties, security);
            processes.add(process);
            BrokerServer broker = new NodeObjects(process, config, clusterId, listeners.ports())
                .broker(security.asked(), token -> controllerServer.tokenCache().token(token) != null);
            if (startup) broker.startup();
            return broker;
        } catch (IOException | InterruptedException | ExecutionException e) {
            throw new RuntimeException(e);
        }
    }

    private String voters() throws InterruptedException, ExecutionException {
        return controllerQuorumVotersFuture.get().entrySet().stream()
            .map(e -> e.getKey() + "@" + e.getValue().getHostString() + ":" + e.getValue().getPort())
            .collect(Collectors.joining(","));
    }

    private void format(KafkaConfig config) throws IOException {
        for (String dir : config.logDirs()) new File(dir).mkdirs();
        MetaPropertiesEnsemble ensemble = new MetaPropertiesEnsemble.Loader().addLogDirs(config.logDirs())
            .addMetadataLogDir(config.metadataLogDir()).load();
        MetaPropertiesEnsemble.Copier copier = new MetaPropertiesEnsemble.Copier(ensemble);
        for (String dir : ensemble.emptyLogDirs()) {
            copier.setLogDirProps(dir, new MetaProperties.Builder().setVersion(MetaPropertiesVersion.V1)
                .setClusterId(clusterId).setNodeId(config.nodeId()).setDirectoryId(copier.generateValidDirectoryId()).build());
        }
        copier.writeLogDirChanges();
    }

    @Override
    public void shutdown() {
        processes.forEach(NodeProcess::end);
        processes.forEach(NodeProcess::reap);
        Utils.swallow(() -> controllerServer.shutdown());
    }
}

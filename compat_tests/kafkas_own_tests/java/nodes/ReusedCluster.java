package nodes;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.UserScramCredentialAlteration;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.test.KafkaClusterTestKit;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;

/** A cluster that is emptied for the next test: no topics but internal ones, no groups, no dynamic configuration, no users. */
public final class ReusedCluster {
    private static final int LOOKS = 200;
    private static final Set<ConfigSource> SET = Set.of(ConfigSource.DYNAMIC_GROUP_CONFIG, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG);

    private ReusedCluster() { }

    /** Whether the next test can have the cluster. */
    public static boolean empty(Collection<NodeProcess> nodes, KafkaClusterTestKit cluster) {
        if (cluster.brokers().isEmpty() || !nodes.stream().allMatch(NodeProcess::isUntouched)) return false;
        try (Admin admin = cluster.admin(Map.of("default.api.timeout.ms", 20_000, "request.timeout.ms", 15_000))) {
            if (hasDynamicConfiguration(admin) || !removeUsers(cluster, admin)) return false;
            removeConfigurations(admin);
            List<String> groups = admin.listGroups().all().get().stream().map(GroupListing::groupId).toList();
            if (!groups.isEmpty()) admin.deleteConsumerGroups(groups).all().get();
            Set<String> topics = admin.listTopics(new ListTopicsOptions().listInternal(false)).names().get();
            if (!topics.isEmpty()) admin.deleteTopics(topics).all().get();
            return areTopicsGone(cluster);
        } catch (ExecutionException e) {
            return false;  // a group with members, for one
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    /** Kafka's controller sets min.insync.replicas by itself where eligible leader replicas are on. */
    private static boolean hasDynamicConfiguration(Admin admin) throws ExecutionException, InterruptedException {
        ConfigResource everyBroker = new ConfigResource(ConfigResource.Type.BROKER, "");
        return admin.describeConfigs(List.of(everyBroker)).all().get().get(everyBroker).entries().stream()
            .filter(e -> e.source() == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
            .map(ConfigEntry::name).anyMatch(name -> !name.equals("min.insync.replicas"));
    }

    /** Removes what a test set for groups, which outlives them, and for what clients measure. */
    private static void removeConfigurations(Admin admin) throws ExecutionException, InterruptedException {
        Collection<ConfigResource> resources = admin.listConfigResources(
            Set.of(ConfigResource.Type.GROUP, ConfigResource.Type.CLIENT_METRICS), new ListConfigResourcesOptions()).all().get();
        if (resources.isEmpty()) return;
        Map<ConfigResource, Collection<AlterConfigOp>> removals = new HashMap<>();
        admin.describeConfigs(resources).all().get().forEach((resource, config) -> removals.put(resource, config.entries().stream()
            .filter(e -> SET.contains(e.source())).map(e -> new AlterConfigOp(e, AlterConfigOp.OpType.DELETE)).toList()));
        admin.incrementalAlterConfigs(removals).all().get();
    }

    /** Removes what a test left of users, their ACLs and their quotas; whether brokers have seen that it is gone. */
    private static boolean removeUsers(KafkaClusterTestKit cluster, Admin admin) throws ExecutionException, InterruptedException {
        List<UserScramCredentialAlteration> credentials = admin.describeUserScramCredentials().all().get().values().stream()
            .flatMap(user -> user.credentialInfos().stream().<UserScramCredentialAlteration>map(
                info -> new UserScramCredentialDeletion(user.name(), info.mechanism()))).toList();
        if (!credentials.isEmpty()) admin.alterUserScramCredentials(credentials).all().get();
        List<ClientQuotaAlteration> quotas = admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().entrySet().stream()
            .map(e -> new ClientQuotaAlteration(e.getKey(),
                e.getValue().keySet().stream().map(key -> new ClientQuotaAlteration.Op(key, null)).toList())).toList();
        if (!quotas.isEmpty()) admin.alterClientQuotas(quotas).all().get();
        boolean hasAcls = hasAcls(admin);
        if (hasAcls) admin.deleteAcls(List.of(AclBindingFilter.ANY)).all().get();
        if (credentials.isEmpty() && quotas.isEmpty() && !hasAcls) return true;
        if (cluster.brokers().size() > 1) return false;  // an admin asks one broker, and others may be behind it
        for (int looks = 0; looks < LOOKS; looks++) {
            if (isWithoutUsers(admin)) return true;
            Waiting.shortly();
        }
        return false;
    }

    private static boolean isWithoutUsers(Admin admin) throws ExecutionException, InterruptedException {
        return admin.describeUserScramCredentials().all().get().isEmpty()
            && admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().isEmpty() && !hasAcls(admin);
    }

    private static boolean hasAcls(Admin admin) throws ExecutionException, InterruptedException {
        try {
            return !admin.describeAcls(AclBindingFilter.ANY).values().get().isEmpty();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof SecurityDisabledException) return false;
            throw e;
        }
    }

    private static boolean areTopicsGone(KafkaClusterTestKit cluster) {
        for (int looks = 0; looks < LOOKS; looks++) {
            if (cluster.brokers().values().stream().allMatch(b -> hasNoTopics(b.metadataCache().getAllTopics()))) return true;
            Waiting.shortly();
        }
        return false;
    }

    private static boolean hasNoTopics(Set<String> topics) {
        return topics.stream().allMatch(t -> t.startsWith("__"));
    }
}

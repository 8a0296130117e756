package nodes;

import kafka.network.ConnectionQuotas;
import kafka.server.ClientRequestQuotaManager;
import kafka.server.QuotaFactory.QuotaManagers;

import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;

/** The quotas that the broker on a port tells of, and which of them a client has: the most specific one. */
final class KnownQuotas {
    private final KnownSecurity known;

    KnownQuotas(int port) {
        this.known = new KnownSecurity(port);
    }

    QuotaManagers managers() {
        return Stand.in(QuotaManagers.class, Map.of(
            "fetch", a -> manager(ClientQuotaManager.class, "consumer_byte_rate"),
            "produce", a -> manager(ClientQuotaManager.class, "producer_byte_rate"),
            "request", a -> manager(ClientRequestQuotaManager.class, "request_percentage"),
            "controllerMutation", a -> manager(ControllerMutationQuotaManager.class, "controller_mutation_rate")));
    }

    /** Of addresses: how many connections each may make in a second. */
    ConnectionQuotas ofAddresses() {
        return Stand.in(ConnectionQuotas.class, Map.of("connectionRateForIp", a -> {
            Map<ClientQuotaEntity, Map<String, Double>> all = all();
            String address = ((InetAddress) a[0]).getHostAddress();
            return Stream.of(entity("ip", address), entity("ip", null)).map(all::get).filter(Objects::nonNull)
                .map(each -> each.get("connection_creation_rate")).filter(Objects::nonNull)
                .map(Double::intValue).findFirst().orElse(Integer.MAX_VALUE);
        }));
    }

    private Map<ClientQuotaEntity, Map<String, Double>> all() {
        return known.ask(admin -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities());
    }

    private <T> T manager(Class<T> type, String key) {
        return Stand.in(type, Map.of("quota", a -> quota(key,
            a[0] instanceof KafkaPrincipal principal ? principal.getName() : (String) a[0], (String) a[1])));
    }

    private Quota quota(String key, String user, String clientId) {
        Map<ClientQuotaEntity, Map<String, Double>> all = all();
        for (ClientQuotaEntity entity : entities(user, clientId)) {
            Double bound = all.getOrDefault(entity, Map.of()).get(key);
            if (bound != null) return Quota.upperBound(bound);
        }
        return Quota.upperBound(Long.MAX_VALUE);
    }

    /** From the most specific on; null is a default. */
    private static List<ClientQuotaEntity> entities(String user, String clientId) {
        List<ClientQuotaEntity> found = new ArrayList<>();
        for (String of : Arrays.asList(user, null)) {
            for (String id : Arrays.asList(clientId, null)) found.add(entity("user", of, "client-id", id));
            found.add(entity("user", of));
        }
        for (String id : Arrays.asList(clientId, null)) found.add(entity("client-id", id));
        return found;
    }

    private static ClientQuotaEntity entity(String... parts) {
        Map<String, String> entries = new HashMap<>();
        for (int i = 0; i < parts.length; i += 2) entries.put(parts[i], parts[i + 1]);
        return new ClientQuotaEntity(entries);
    }
}

package nodes;

import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.KafkaPrincipalBuilder;
import org.apache.kafka.common.security.auth.PlaintextAuthenticationContext;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;

import java.io.IOException;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * What a process is told of security, where Kafka's tests rely on what is in their own JVM.
 *
 * <ul>
 * <li>A section of the JVM's JAAS file becomes a line of the properties ({@link JaasLines}).
 * <li>A test's principal builder names one principal for all who connect to a PLAINTEXT listener at a time: the listener
 * becomes SASL_PLAINTEXT, behind a {@link SaslFront} for that user. What two builders make of the names in certificates is
 * said in {@code ssl.principal.mapping.rules}; nodes of Apache Kafka have these builders themselves.
 * <li>A test's own subclass of StandardAuthorizer allows everything but one API, to one principal: its controller, in the
 * JVM, does so, and a broker has the StandardAuthorizer that allows everyone. Nodes of Apache Kafka have the class.
 * <li>Where a client of the harness could not ask a broker what it knows, the broker has one more listener for it.
 * </ul>
 */
public final class ProcessSecurity {
    static final String HARNESS = "HARNESS";
    private static final String BUILDER = "principal.builder.class";
    private static final Map<String, String> RULES = Map.of(
        "kafka.api.SslEndToEndAuthorizationTest$TestPrincipalBuilder",
        "RULE:^O=A server,CN=.*$/server/,RULE:^O=A .*,CN=super-user$/server/,DEFAULT",
        "kafka.api.SslAdminIntegrationTest$TestPrincipalBuilder",
        "RULE:^O=A server,CN=.*$/server/,RULE:^O=A .*,CN=super-user$/server/,RULE:^O=A .*,CN=client$/client/,RULE:^.*$/ANONYMOUS/");

    private final Map<String, Object> properties;
    private final Listeners listeners;
    private final boolean areControllersProcesses;
    private final Map<String, String> protocols = new LinkedHashMap<>();
    private final List<SaslFront> fronts = new ArrayList<>();
    private String asked;

    /** properties: of one node, with ports; they are changed. asked: the listener that the harness asks a broker on. */
    public ProcessSecurity(Map<String, Object> properties, Listeners listeners, boolean areControllersProcesses, String asked)
            throws IOException {
        this.properties = properties;
        this.listeners = listeners;
        this.areControllersProcesses = areControllersProcesses;
        this.asked = asked.toUpperCase(Locale.ROOT);
        readProtocols();
        Map<String, String> builders = ownBuilders();
        String betweenBrokers = text("inter.broker.listener.name", asked).toUpperCase(Locale.ROOT);
        boolean isAskedBehindFront = builders.containsKey(betweenBrokers) && "PLAINTEXT".equals(protocols.get(betweenBrokers));
        if (isAskedBehindFront) this.asked = betweenBrokers;
        replaceBuilders(builders);
        if (!NodeProcess.IS_KAFKA && hasOwnClass("authorizer.class.name", StandardAuthorizer.class)) replaceAuthorizer();
        boolean isHidden = !"PLAINTEXT".equals(protocols.get(this.asked)) || properties.get("authorizer.class.name") != null;
        if (isBroker() && !isAskedBehindFront && isHidden) addHarnessListener();
        if (!NodeProcess.IS_KAFKA) JaasLines.add(properties, mechanisms());
    }

    public String asked() {
        return asked;
    }

    /** To be closed with the node. */
    List<SaslFront> fronts() {
        return fronts;
    }

    private boolean isBroker() {
        return text("process.roles", "broker").contains("broker");
    }

    private String text(String key, String otherwise) {
        Object value = properties.get(key);
        return value == null || value.toString().isEmpty() ? otherwise : NodeProcess.text(value);
    }

    private List<String> list(String key) {
        return List.of(text(key, "").split("\\s*,\\s*")).stream().filter(each -> !each.isEmpty()).toList();
    }

    private Set<String> controllerNames() {
        return list("controller.listener.names").stream().map(n -> n.toUpperCase(Locale.ROOT))
            .collect(Collectors.toCollection(LinkedHashSet::new));
    }

    private static String nameOf(String listener) {
        return listener.substring(0, listener.indexOf("://")).toUpperCase(Locale.ROOT);
    }

    /** Where no map is given, a listener is called like its protocol, and controllers' are PLAINTEXT. */
    private void readProtocols() {
        for (String name : controllerNames()) protocols.put(name, "PLAINTEXT");
        for (String protocol : List.of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")) protocols.put(protocol, protocol);
        for (String each : list("listener.security.protocol.map")) {
            String[] pair = each.split(":");
            protocols.put(pair[0].toUpperCase(Locale.ROOT), pair[1].toUpperCase(Locale.ROOT));
        }
    }

    private boolean hasOwnClass(String key, Class<?> released) {
        Object value = properties.get(key);
        return value != null && !NodeProcess.text(value).isEmpty() && !NodeProcess.text(value).equals(released.getName());
    }

    private Set<String> ownListeners() {
        return list("listeners").stream().map(ProcessSecurity::nameOf).collect(Collectors.toCollection(LinkedHashSet::new));
    }

    /** The classes that are not Kafka's own, by listener. */
    private Map<String, String> ownBuilders() {
        Set<String> names = ownListeners();
        if (areControllersProcesses) names.addAll(controllerNames());
        Map<String, String> found = new TreeMap<>();
        for (String name : names) {
            String own = JaasLines.prefix(name) + BUILDER;
            String key = properties.containsKey(own) ? own : BUILDER;
            if (hasOwnClass(key, DefaultKafkaPrincipalBuilder.class)) found.put(name, NodeProcess.text(properties.get(key)));
        }
        return found;
    }

    private void replaceBuilders(Map<String, String> builders) throws IOException {
        if (!NodeProcess.IS_KAFKA) {
            properties.keySet().removeIf(key -> key.equals(BUILDER) || key.startsWith("listener.name.") && key.endsWith("." + BUILDER));
        }
        for (Map.Entry<String, String> each : builders.entrySet()) {
            String name = each.getKey();
            if ("PLAINTEXT".equals(protocols.get(name))) {
                replaceBuilder(name, (KafkaPrincipalBuilder) newInstance(each.getValue()));
                if (NodeProcess.IS_KAFKA) properties.put(JaasLines.prefix(name) + BUILDER, DefaultKafkaPrincipalBuilder.class.getName());
            } else if (NodeProcess.IS_KAFKA) {
                continue;
            } else if ("SSL".equals(protocols.get(name)) && RULES.containsKey(each.getValue())) {
                properties.put(JaasLines.prefix(name) + "ssl.principal.mapping.rules", RULES.get(each.getValue()));
            } else {
                throw RunningTest.needs(each.getValue());
            }
        }
    }

    private void replaceBuilder(String name, KafkaPrincipalBuilder builder) throws IOException {
        Supplier<String> user = () -> user(builder, name);
        boolean isOfControllers = controllerNames().contains(name);
        if (isOfControllers && user.get().equals(KafkaPrincipal.ANONYMOUS.getName())) return;
        addSasl(name, user.get());
        if (isOfControllers) {
            properties.put("sasl.mechanism.controller.protocol", SaslFront.MECHANISM);
        } else {
            addFront(name, user);
            if (name.equals(asked)) properties.put("sasl.mechanism.inter.broker.protocol", SaslFront.MECHANISM);
        }
    }

    private static String user(KafkaPrincipalBuilder builder, String listener) {
        KafkaPrincipal principal = builder.build(new PlaintextAuthenticationContext(InetAddress.getLoopbackAddress(), listener));
        if (!principal.getPrincipalType().equals(KafkaPrincipal.USER_TYPE)) throw RunningTest.needs("a principal that is no User");
        return principal.getName();
    }

    private static Object newInstance(String name) {
        try {
            return Class.forName(name).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new RuntimeException(e);
        }
    }

    private void replaceAuthorizer() {
        properties.put("authorizer.class.name", StandardAuthorizer.class.getName());
        properties.put("allow.everyone.if.no.acl.found", "true");
    }

    private void addSuperUser(String user) {
        String others = text("super.users", "");
        properties.put("super.users", (others.isEmpty() ? "" : others + ";") + "User:" + user);
    }

    private void addHarnessListener() throws IOException {
        properties.put("listeners", text("listeners", "") + "," + HARNESS + "://localhost:" + listeners.port(HARNESS));
        if (properties.get("advertised.listeners") != null) {
            properties.put("advertised.listeners", text("advertised.listeners", "") + "," + HARNESS + "://localhost:" + listeners.port(HARNESS));
        }
        addSasl(HARNESS, "harness");
        addFront(HARNESS, () -> "harness");
        if (NodeProcess.IS_KAFKA) properties.put(JaasLines.prefix(HARNESS) + BUILDER, DefaultKafkaPrincipalBuilder.class.getName());
        if (properties.get("authorizer.class.name") != null) addSuperUser("harness");
        asked = HARNESS;
    }

    /** user: as whom the node itself authenticates there. Sessions last, as on the listener that this one stands for. */
    private void addSasl(String listener, String user) {
        protocols.put(listener, "SASL_PLAINTEXT");
        properties.put("listener.security.protocol.map", protocols.entrySet().stream().map(e -> e.getKey() + ":" + e.getValue())
            .collect(Collectors.joining(",")));
        properties.put(JaasLines.prefix(listener) + "sasl.enabled.mechanisms", SaslFront.MECHANISM);
        properties.put(JaasLines.prefix(listener) + SaslFront.MECHANISM.toLowerCase(Locale.ROOT) + ".connections.max.reauth.ms", "0");
        properties.put(JaasLines.key(listener, SaslFront.MECHANISM), JaasLines.line(
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule", Map.of("unsecuredLoginStringClaim_sub", user)));
    }

    /** The front has the port that the listener had, which is advertised, and the process another one. */
    private void addFront(String listener, Supplier<String> user) throws IOException {
        int port = listeners.port(listener);
        int behind = Listeners.freePort();
        Set<String> controllers = controllerNames();
        properties.putIfAbsent("advertised.listeners",
            list("listeners").stream().filter(each -> !controllers.contains(nameOf(each))).collect(Collectors.joining(",")));
        properties.put("listeners", list("listeners").stream()
            .map(each -> nameOf(each).equals(listener) ? each.substring(0, each.lastIndexOf(':') + 1) + behind : each)
            .collect(Collectors.joining(",")));
        fronts.add(new SaslFront(port, behind, user));
    }

    /** The SASL listeners, those of controllers elsewhere included, with what is offered there and used between nodes. */
    private Map<String, List<String>> mechanisms() {
        Map<String, List<String>> found = new LinkedHashMap<>();
        Set<String> names = ownListeners();
        names.addAll(controllerNames());
        for (String name : names) {
            if (!protocols.getOrDefault(name, "").startsWith("SASL_")) continue;
            String own = JaasLines.prefix(name) + "sasl.enabled.mechanisms";
            Set<String> used = new LinkedHashSet<>(list(properties.containsKey(own) ? own : "sasl.enabled.mechanisms"));
            used.addAll(list(controllerNames().contains(name) ? "sasl.mechanism.controller.protocol" : "sasl.mechanism.inter.broker.protocol"));
            found.put(name, List.copyOf(used));
        }
        return found;
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.network.ConnectionMode;
import org.apache.kafka.common.security.ssl.SslFactory;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Answers for Java and Apache Kafka, one question a line: a word and its arguments in hexadecimal. The answer is a line
 * in hexadecimal, behind "=" or, where an exception was thrown, behind "!".
 */
public class TlsReferee {
    private static final List<String> LISTS = List.of("ssl.cipher.suites", "ssl.enabled.protocols");
    private static final List<String> SECRETS = List.of(
        "ssl.keystore.password", "ssl.key.password", "ssl.truststore.password", "ssl.keystore.key",
        "ssl.keystore.certificate.chain", "ssl.truststore.certificates");

    public static void main(String[] arguments) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = System.out;
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.split(" ", -1);
            String answer;
            try {
                answer = "=" + hex(answer(words));
            } catch (Throwable thrown) {
                answer = "!" + hex(chain(thrown));
            }
            answers.println(answer);
        }
    }

    private static String answer(String[] words) throws Exception {
        return switch (words[0]) {
            case "name" -> new X500Principal(HexFormat.of().parseHex(words[1])).getName();
            case "map" -> SslPrincipalMapper.fromRules(text(words[1])).getName(text(words[2]));
            case "suites" -> String.join(",", SSLContext.getDefault().getSupportedSSLParameters().getCipherSuites());
            case "configure" -> configure(values(words[1]));
            case "replace" -> replace(values(words[1]), values(words[2]));
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    /** Makes an engine of either mode, as each connection does. */
    private static String configure(Map<String, Object> values) {
        SslFactory server = new SslFactory(ConnectionMode.SERVER);
        server.configure(new HashMap<>(values));
        SSLEngine serving = server.createSslEngine("localhost", 1);
        SslFactory client = new SslFactory(ConnectionMode.CLIENT);
        client.configure(new HashMap<>(values));
        SSLEngine connecting = client.createSslEngine("localhost", 1);
        return Arrays.toString(serving.getEnabledProtocols()) + Arrays.toString(connecting.getEnabledProtocols());
    }

    private static String replace(Map<String, Object> before, Map<String, Object> after) {
        SslFactory factory = new SslFactory(ConnectionMode.SERVER);
        factory.configure(before);
        factory.validateReconfiguration(after);
        return "";
    }

    /** All values of a listener, typed, from lines of a properties file. */
    private static Map<String, Object> values(String encoded) throws Exception {
        Properties given = new Properties();
        given.load(new StringReader(text(encoded)));
        Map<String, Object> values = new HashMap<>(Map.of(
            "ssl.protocol", "TLSv1.3", "ssl.enabled.protocols", List.of("TLSv1.2", "TLSv1.3"),
            "ssl.cipher.suites", List.of(), "ssl.keystore.type", "JKS", "ssl.truststore.type", "JKS",
            "ssl.keymanager.algorithm", "SunX509", "ssl.trustmanager.algorithm", "PKIX", "ssl.client.auth", "none",
            "ssl.endpoint.identification.algorithm", "https"));
        for (String name : given.stringPropertyNames()) {
            String text = given.getProperty(name).trim();
            Object value = LISTS.contains(name) ? ConfigDef.parseType(name, text, ConfigDef.Type.LIST)
                : SECRETS.contains(name) ? new Password(text)
                : name.startsWith("ssl.allow.") ? Boolean.valueOf(text) : text;
            values.put(name, value);
        }
        return values;
    }

    private static String chain(Throwable thrown) {
        StringBuilder text = new StringBuilder();
        for (Throwable each = thrown; each != null; each = each.getCause()) {
            text.append(text.isEmpty() ? "" : " <- ").append(each);
        }
        return text.toString();
    }

    private static String text(String encoded) {
        return new String(HexFormat.of().parseHex(encoded), StandardCharsets.UTF_8);
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}

package kafka.security.minikdc;

import nodes.RunningTest;

import java.io.File;
import java.util.List;
import java.util.Properties;

/**
 * Stands before Kafka's class of the same name, which needs the jars of a directory server as soon as it is loaded.
 *
 * <p>Every test with SASL loads it, and those with GSSAPI start it: they are aborted.
 */
public class MiniKdc {
    public MiniKdc(Properties config, File workDir) { }

    public static Properties createConfig() {
        return new Properties();
    }

    public void start() {
        throw RunningTest.needs("a KDC for GSSAPI");
    }

    public void stop() { }

    public void createPrincipal(File keytab, List<String> principals) {
        throw RunningTest.needs("a KDC for GSSAPI");
    }
}

package nodes;

import net.bytebuddy.implementation.bind.annotation.Argument;
import net.bytebuddy.implementation.bind.annotation.SuperCall;

import org.apache.kafka.connect.runtime.isolation.PluginScanResult;
import org.apache.kafka.connect.runtime.isolation.PluginSource;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;

/**
 * The plugins of Connect on the class path, which are looked for once in a JVM and not by each worker.
 *
 * <p>A worker reads all jars for them, which takes seconds, and a test starts up to six workers. The harness has
 * {@code ReflectionScanner} ask here ({@link ChangedClasses}).
 */
public final class KeptPlugins {
    private static final Map<PluginSource, PluginScanResult> FOUND = new HashMap<>();

    private KeptPlugins() { }

    /** In the place of {@code ReflectionScanner.scanPlugins}; loaders of a plugin path are each worker's own. */
    public static PluginScanResult scan(@Argument(0) PluginSource source, @SuperCall Callable<PluginScanResult> look) throws Exception {
        if (source.isolated()) return look.call();
        synchronized (FOUND) {
            PluginScanResult found = FOUND.get(source);
            if (found == null) FOUND.put(source, found = look.call());
            return found;
        }
    }
}

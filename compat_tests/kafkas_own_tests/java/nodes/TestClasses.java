package nodes;

import kafka.server.QuorumTestHarness;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Prints the test classes of jars whose brokers can be processes, one a line: the jar's name, the class.
 *
 * <p>A class starts brokers where it is based on QuorumTestHarness, has an annotation such as {@code @ClusterTest}, or
 * names Kafka's test kit, or what Streams and Connect wrap it in, itself or in a class that it extends or nests.
 */
public final class TestClasses {
    private static final List<String> CLUSTERS = List.of("common/test/KafkaClusterTestKit", "EmbeddedKafkaCluster",
        "EmbeddedConnectCluster", "EmbeddedConnectStandalone");

    private TestClasses() { }

    public static void main(String[] args) throws IOException {
        for (String path : args) {
            try (JarFile jar = new JarFile(path)) {
                for (String name : classesOf(jar)) {
                    if (isOfCluster(name, jar)) System.out.println(new File(path).getName() + " " + name);
                }
            }
        }
    }

    private static List<String> classesOf(JarFile jar) {
        return jar.stream().map(JarEntry::getName).filter(n -> n.endsWith(".class") && !n.contains("$"))
            .map(n -> n.substring(0, n.length() - ".class".length()).replace('/', '.')).sorted().toList();
    }

    private static boolean isOfCluster(String name, JarFile jar) throws IOException {
        try {
            Class<?> type = Class.forName(name, false, TestClasses.class.getClassLoader());
            if (Modifier.isAbstract(type.getModifiers())) return false;
            List<String> annotations = annotationsOf(type);
            boolean hasTests = annotations.stream().anyMatch(a -> a.endsWith("Test"));
            return hasTests && (QuorumTestHarness.class.isAssignableFrom(type) || namesCluster(type, jar))
                || annotations.stream().anyMatch(a -> a.startsWith("Cluster"));
        } catch (ClassNotFoundException | LinkageError noSuchSuperclass) {
            System.err.println(name + ": " + noSuchSuperclass);
            return false;
        }
    }

    private static boolean namesCluster(Class<?> type, JarFile jar) throws IOException {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            String file = each.getName().replace('.', '/');
            List<JarEntry> entries = jar.stream()
                .filter(e -> e.getName().equals(file + ".class") || e.getName().startsWith(file + "$")).toList();
            for (JarEntry entry : entries) {
                if (namesCluster(jar, entry)) return true;
            }
        }
        return false;
    }

    private static boolean namesCluster(JarFile jar, JarEntry entry) throws IOException {
        try (InputStream in = jar.getInputStream(entry)) {
            String constants = new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
            return CLUSTERS.stream().anyMatch(constants::contains);
        }
    }

    /** Of its methods, inherited ones too; "Test" for a class that needs what is not there: it counts by its name. */
    private static List<String> annotationsOf(Class<?> type) {
        List<String> found = new ArrayList<>();
        try {
            for (Class<?> each = type; each != null; each = each.getSuperclass()) {
                for (Method method : each.getDeclaredMethods()) {
                    for (Annotation annotation : method.getAnnotations()) {
                        found.add(annotation.annotationType().getSimpleName());
                    }
                }
            }
        } catch (LinkageError needsWhatIsNotThere) {
            System.err.println(type.getName() + ": " + needsWhatIsNotThere);
            if (type.getName().endsWith("Test")) found.add("Test");
        }
        return found;
    }
}

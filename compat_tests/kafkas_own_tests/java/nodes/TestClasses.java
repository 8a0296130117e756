package nodes;

import kafka.server.QuorumTestHarness;

import java.io.File;
import java.io.IOException;
import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarFile;

/** Prints the test classes of jars whose brokers can be processes, one a line: the jar's name, the class. */
public final class TestClasses {
    private TestClasses() { }

    public static void main(String[] args) throws IOException {
        for (String jar : args) {
            for (String name : classesOf(jar)) {
                if (isOfCluster(name)) System.out.println(new File(jar).getName() + " " + name);
            }
        }
    }

    private static List<String> classesOf(String path) throws IOException {
        try (JarFile jar = new JarFile(path)) {
            return jar.stream().map(e -> e.getName()).filter(n -> n.endsWith(".class") && !n.contains("$"))
                .map(n -> n.substring(0, n.length() - ".class".length()).replace('/', '.')).sorted().toList();
        }
    }

    private static boolean isOfCluster(String name) {
        try {
            Class<?> type = Class.forName(name, false, TestClasses.class.getClassLoader());
            if (Modifier.isAbstract(type.getModifiers())) return false;
            List<String> annotations = annotationsOf(type);
            boolean hasTests = annotations.stream().anyMatch(a -> a.endsWith("Test"));
            return hasTests && QuorumTestHarness.class.isAssignableFrom(type)
                || annotations.stream().anyMatch(a -> a.startsWith("Cluster"));
        } catch (ClassNotFoundException | LinkageError needsWhatIsNotThere) {
            System.err.println(name + ": " + needsWhatIsNotThere);
            return false;
        }
    }

    /** Of its methods, inherited ones too. */
    private static List<String> annotationsOf(Class<?> type) {
        List<String> found = new ArrayList<>();
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Method method : each.getDeclaredMethods()) {
                for (Annotation annotation : method.getAnnotations()) {
                    found.add(annotation.annotationType().getSimpleName());
                }
            }
        }
        return found;
    }
}

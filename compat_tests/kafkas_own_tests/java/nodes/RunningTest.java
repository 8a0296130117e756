package nodes;

import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.LifecycleMethodExecutionExceptionHandler;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.jupiter.api.extension.TestInstanceFactoryContext;
import org.junit.jupiter.api.extension.TestInstancePreConstructCallback;
import org.opentest4j.TestAbortedException;

/**
 * The test that runs now, and its verdict where it asked for what only a broker in its own JVM has.
 *
 * <p>Such a test is reported as aborted and not as failed. JUnit loads this extension (META-INF/services).
 */
public class RunningTest
        implements BeforeAllCallback, TestInstancePreConstructCallback, BeforeEachCallback, TestExecutionExceptionHandler,
        LifecycleMethodExecutionExceptionHandler {
    private static volatile String missing;
    private static volatile String name = "none";

    /** Class, method and number of the invocation, in letters fit for a file's name; the class before its first test. */
    static String name() {
        return name;
    }

    /** The exception for a test that asks for an object of a broker that no process has. */
    public static RuntimeException needs(String what) {
        missing = what;
        return new TestAbortedException("needs broker internals: " + what);
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        missing = null;
        name = context.getRequiredTestClass().getSimpleName();
        context.getRoot().getStore(Namespace.GLOBAL)
            .getOrComputeIfAbsent("idle clusters", key -> (AutoCloseable) KafkaClusterTestKit::endIdle);
    }

    @Override
    public void preConstructTestInstance(TestInstanceFactoryContext factory, ExtensionContext context) {
        KeptKeys.beginAnew();
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        missing = null;
        String invocation = context.getUniqueId().replaceFirst("(?s).*invocation:#(\\d+).*", "$1");
        name = context.getRequiredTestClass().getSimpleName() + "." + context.getRequiredTestMethod().getName()
            + (invocation.matches("\\d+") ? "-" + invocation : "");
        System.out.println("==== " + new java.util.Date() + " " + name);
    }

    /** Any failure after a test asked for such an object counts as its consequence: tests catch and retry. */
    private static void judge(Throwable failure) throws Throwable {
        if (missing != null && !(failure instanceof TestAbortedException)) {
            throw new TestAbortedException("needs broker internals: " + missing, failure);
        }
        System.out.println("**** " + name + ": " + failure);
        throw failure;
    }

    @Override
    public void handleBeforeAllMethodExecutionException(ExtensionContext context, Throwable failure) throws Throwable {
        judge(failure);
    }

    @Override
    public void handleTestExecutionException(ExtensionContext context, Throwable failure) throws Throwable {
        judge(failure);
    }

    @Override
    public void handleBeforeEachMethodExecutionException(ExtensionContext context, Throwable failure) throws Throwable {
        judge(failure);
    }

    @Override
    public void handleAfterEachMethodExecutionException(ExtensionContext context, Throwable failure) throws Throwable {
        judge(failure);
    }
}

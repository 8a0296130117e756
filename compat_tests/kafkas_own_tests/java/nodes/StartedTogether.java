package nodes;

import net.bytebuddy.asm.Advice;

import java.util.ArrayList;
import java.util.List;

/**
 * The brokers that KafkaServerTestHarness starts for a test: it starts one, waits until that is ready, and goes on.
 *
 * <p>Here all processes of one such call start beside each other, and the call ends when all of them are ready, or throws
 * what the first of them says that is not. The harness has {@code createBrokers} do so ({@link ChangedClasses}).
 */
public final class StartedTogether {
    private static final ThreadLocal<List<NodeProcess>> STARTED = new ThreadLocal<>();

    private StartedTogether() { }

    /** Around the method: the code of both is copied into its class. */
    public static final class Around {
        private Around() { }

        @Advice.OnMethodEnter
        public static void enter() {
            begin();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        public static void exit(@Advice.Thrown Throwable failure) {
            end(failure == null);
        }
    }

    public static void begin() {
        STARTED.set(new ArrayList<>());
    }

    /** isAwaited: not where the call fails already; its test ends the processes. */
    public static void end(boolean isAwaited) {
        List<NodeProcess> started = STARTED.get();
        STARTED.remove();
        if (isAwaited) started.forEach(NodeProcess::await);
    }

    /** Waits for the process, which is started, or has the call that started it wait. */
    static void await(NodeProcess process) {
        List<NodeProcess> started = STARTED.get();
        if (started == null) process.await(); else started.add(process);
    }
}

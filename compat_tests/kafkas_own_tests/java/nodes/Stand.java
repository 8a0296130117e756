package nodes;

import org.mockito.Mockito;
import org.mockito.stubbing.Answer;

import java.util.Map;
import java.util.function.Function;

/**
 * Objects of Kafka's own classes that stand for what lives in another process.
 *
 * <p>The few methods that can be answered from outside are; any other one says that the test needs a broker in its JVM.
 */
final class Stand {
    /** From the arguments of a call to its result. */
    interface Method extends Function<Object[], Object> { }

    private Stand() { }

    static <T> T in(Class<T> type, String name, Map<String, Method> methods) {
        Answer<Object> answer = call -> switch (call.getMethod().getName()) {
            case "toString" -> name;
            case "hashCode" -> System.identityHashCode(call.getMock());
            case "equals" -> call.getMock() == call.getArgument(0);
            default -> {
                Method known = methods.get(call.getMethod().getName());
                if (known == null) throw RunningTest.needs(type.getSimpleName() + "." + call.getMethod().getName());
                yield known.apply(call.getArguments());
            }
        };
        return Mockito.mock(type, Mockito.withSettings().defaultAnswer(answer).stubOnly());
    }

    static <T> T in(Class<T> type, Map<String, Method> methods) {
        return in(type, type.getSimpleName(), methods);
    }
}

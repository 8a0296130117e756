package nodes;

import kafka.api.QuotaTestClients;
import kafka.integration.KafkaServerTestHarness;
import kafka.server.AlterUserScramCredentialsRequestTest;
import kafka.server.KafkaBroker;
import kafka.server.QuorumTestHarness;
import kafka.utils.TestUtils$;

import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.MethodCall;
import net.bytebuddy.implementation.MethodDelegation;

import org.apache.kafka.clients.consumer.ShareConsumerTest;
import org.apache.kafka.connect.runtime.isolation.ReflectionScanner;
import org.apache.kafka.server.UncleanLeaderElectionTest;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.test.TestSslUtils;

import java.io.File;
import java.util.List;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.namedOneOf;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;

/**
 * A step of the build: classes of Kafka's tests of which one method is another one here.
 *
 * <ul>
 * <li>QuorumTestHarness, and a test that has a say in it, format with the metadata.version that is released, and not with
 * the next one.
 * <li>Keys of certificates are made once ({@link KeptKeys}), and plugins of Connect looked for once ({@link KeptPlugins}).
 * <li>What tests read of a broker's metrics is answered by {@link KnownMetrics} and {@link KnownThrottling}. What they look
 * for among all metrics of the JVM says that the test needs a broker in its JVM.
 * <li>KafkaServerTestHarness starts its brokers beside each other ({@link StartedTogether}).
 * <li>Unclean elections are counted in the metadata log ({@link KnownElections}).
 * </ul>
 *
 * <p>The argument is the directory that the changed classes are written to.
 */
public final class ChangedClasses {
    private ChangedClasses() { }

    public static void main(String[] args) throws Exception {
        File directory = new File(args[0]);
        MethodCall released = MethodCall.invoke(MetadataVersion.class.getMethod("latestProduction"));
        for (Class<?> each : List.of(QuorumTestHarness.class, AlterUserScramCredentialsRequestTest.class)) {
            new ByteBuddy().redefine(each).method(named("metadataVersion")).intercept(released).make().saveIn(directory);
        }
        new ByteBuddy().redefine(KafkaServerTestHarness.class)
            .visit(Advice.to(StartedTogether.Around.class).on(named("createBrokers"))).make().saveIn(directory);
        new ByteBuddy().redefine(TestUtils$.class).method(named("totalMetricValue").and(takesArgument(0, KafkaBroker.class)))
            .intercept(MethodCall.invoke(KnownMetrics.class.getMethod("total", KafkaBroker.class, String.class)).withAllArguments())
            .make().saveIn(directory);
        new ByteBuddy().redefine(TestSslUtils.class).method(named("generateKeyPair"))
            .intercept(MethodCall.invoke(KeptKeys.class.getMethod("next", String.class)).withAllArguments()).make().saveIn(directory);
        new ByteBuddy().rebase(ReflectionScanner.class).method(named("scanPlugins"))
            .intercept(MethodDelegation.to(KeptPlugins.class)).make().saveIn(directory);
        new ByteBuddy().redefine(QuotaTestClients.class)
            .method(namedOneOf("throttleMetric", "brokerRequestMetricsThrottleTimeMs", "exemptRequestMetric"))
            .intercept(MethodDelegation.to(KnownThrottling.class)).make().saveIn(directory);
        new ByteBuddy().redefine(UncleanLeaderElectionTest.class).method(named("getLeaderElectionCount"))
            .intercept(MethodDelegation.to(KnownElections.class)).make().saveIn(directory);
        new ByteBuddy().redefine(ShareConsumerTest.class).method(named("verifyYammerMetricCount"))
            .intercept(MethodDelegation.to(KnownMetrics.OfJvm.class)).make().saveIn(directory);
    }
}

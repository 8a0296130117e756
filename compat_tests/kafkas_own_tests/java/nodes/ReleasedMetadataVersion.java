package nodes;

import kafka.server.AlterUserScramCredentialsRequestTest;
import kafka.server.QuorumTestHarness;

import net.bytebuddy.ByteBuddy;
import net.bytebuddy.implementation.MethodCall;

import org.apache.kafka.server.common.MetadataVersion;

import java.io.File;
import java.util.List;

import static net.bytebuddy.matcher.ElementMatchers.named;

/**
 * A step of the build: QuorumTestHarness, and a test that has a say in it, format with the metadata.version that is
 * released, and not with the next one.
 *
 * <p>The argument is the directory that the changed classes are written to.
 */
public final class ReleasedMetadataVersion {
    private ReleasedMetadataVersion() { }

    public static void main(String[] args) throws Exception {
        MethodCall released = MethodCall.invoke(MetadataVersion.class.getMethod("latestProduction"));
        for (Class<?> each : List.of(QuorumTestHarness.class, AlterUserScramCredentialsRequestTest.class)) {
            new ByteBuddy().redefine(each).method(named("metadataVersion")).intercept(released).make().saveIn(new File(args[0]));
        }
    }
}

package nodes;

import kafka.server.QuorumTestHarness;

import net.bytebuddy.ByteBuddy;
import net.bytebuddy.implementation.MethodCall;

import org.apache.kafka.server.common.MetadataVersion;

import java.io.File;

import static net.bytebuddy.matcher.ElementMatchers.named;

/**
 * A step of the build: QuorumTestHarness formats with the metadata.version that is released, and not with the next one.
 *
 * <p>The argument is the directory that the changed class is written to.
 */
public final class ReleasedMetadataVersion {
    private ReleasedMetadataVersion() { }

    public static void main(String[] args) throws Exception {
        MethodCall released = MethodCall.invoke(MetadataVersion.class.getMethod("latestProduction"));
        new ByteBuddy().redefine(QuorumTestHarness.class).method(named("metadataVersion")).intercept(released).make()
            .saveIn(new File(args[0]));
    }
}

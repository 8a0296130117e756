package nodes;

import org.apache.kafka.test.TestSslUtils;

import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The key pairs of tests' certificates, which are made once: the n-th of a test is the n-th of each other one.
 *
 * <p>A key takes seconds in this JVM, and a test with TLS makes ten. The harness has {@link TestSslUtils} ask here
 * ({@link ChangedClasses}).
 */
public final class KeptKeys {
    private static final int RSA_BITS = 2048;
    private static final int EC_BITS = 256;
    private static final Map<String, List<KeyPair>> PAIRS = new HashMap<>();
    private static final Map<String, Integer> GIVEN = new HashMap<>();

    private KeptKeys() { }

    /** A test begins. */
    static synchronized void beginAnew() {
        GIVEN.clear();
    }

    /** In the place of {@code TestSslUtils.generateKeyPair}. */
    public static synchronized KeyPair next(String algorithm) throws NoSuchAlgorithmException {
        List<KeyPair> pairs = PAIRS.computeIfAbsent(algorithm, each -> new ArrayList<>());
        int number = GIVEN.merge(algorithm, 1, Integer::sum) - 1;
        if (number == pairs.size()) {
            KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm);
            generator.initialize(algorithm.equals("EC") ? EC_BITS : RSA_BITS);
            pairs.add(generator.generateKeyPair());
        }
        return pairs.get(number);
    }
}

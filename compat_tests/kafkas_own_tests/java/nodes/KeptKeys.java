package nodes;

import org.apache.kafka.test.TestSslUtils;

import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.Map;

/**
 * The key pairs of tests' certificates, which are made once: the n-th of a test is the n-th of each other one.
 *
 * <p>A key takes seconds in this JVM, and a test with TLS makes ten. The system property {@code nodes.keys} names the
 * directory that keeps them from one JVM to the next. The harness has {@link TestSslUtils} ask here
 * ({@link ChangedClasses}).
 */
public final class KeptKeys {
    private static final int RSA_BITS = 2048;
    private static final int EC_BITS = 256;
    private static final Path DIRECTORY = Path.of(System.getProperty("nodes.keys"));
    private static final Map<String, Integer> GIVEN = new HashMap<>();

    private KeptKeys() { }

    /** A test begins. */
    static synchronized void beginAnew() {
        GIVEN.clear();
    }

    /** In the place of {@code TestSslUtils.generateKeyPair}. */
    public static synchronized KeyPair next(String algorithm) throws NoSuchAlgorithmException {
        int number = GIVEN.merge(algorithm, 1, Integer::sum);
        Path file = DIRECTORY.resolve(algorithm + "-" + number);
        try {
            if (!Files.exists(file)) keep(made(algorithm), file);
            try (ObjectInputStream in = new ObjectInputStream(Files.newInputStream(file))) {
                return (KeyPair) in.readObject();
            }
        } catch (IOException | ClassNotFoundException e) {
            throw new RuntimeException(file.toString(), e);
        }
    }

    private static KeyPair made(String algorithm) throws NoSuchAlgorithmException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm);
        generator.initialize(algorithm.equals("EC") ? EC_BITS : RSA_BITS);
        return generator.generateKeyPair();
    }

    private static void keep(KeyPair pair, Path file) throws IOException {
        Files.createDirectories(DIRECTORY);
        Path whole = Files.createTempFile(DIRECTORY, "new", "");
        try (ObjectOutputStream out = new ObjectOutputStream(Files.newOutputStream(whole))) {
            out.writeObject(pair);
        }
        Files.move(whole, file, StandardCopyOption.ATOMIC_MOVE);
    }
}

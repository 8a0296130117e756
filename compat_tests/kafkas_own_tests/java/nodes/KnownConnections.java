package nodes;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Set;

/** The connections of a node from this machine, as its kernel lists them. */
final class KnownConnections {
    private static final List<Path> TABLES = List.of(Path.of("/proc/net/tcp"), Path.of("/proc/net/tcp6"));
    private static final Set<String> ESTABLISHED_OR_LEFT_BY_THE_PEER = Set.of("01", "08");
    private static final int LOCAL = 1;
    private static final int STATE = 3;
    private static final int INODE = 9;

    private KnownConnections() { }

    /** How many there are that the node has accepted and not closed. ports: those that the node listens on. */
    static int count(Collection<Integer> ports) {
        int found = 0;
        for (Path table : TABLES) {
            if (!Files.exists(table)) continue;
            try {
                found += (int) Files.readAllLines(table).stream().skip(1).filter(line -> isOpen(line.strip().split("\\s+"), ports)).count();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return found;
    }

    /** A connection that waits to be accepted has no inode. */
    private static boolean isOpen(String[] row, Collection<Integer> ports) {
        int port = Integer.parseInt(row[LOCAL].substring(row[LOCAL].indexOf(':') + 1), 16);
        return ports.contains(port) && ESTABLISHED_OR_LEFT_BY_THE_PEER.contains(row[STATE]) && !row[INODE].equals("0");
    }
}

package nodes;

/** The pause between two looks at a condition. */
final class Waiting {
    private Waiting() { }

    static void shortly() {
        try {
            Thread.sleep(25);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }
}

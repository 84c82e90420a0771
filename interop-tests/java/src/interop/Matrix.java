package interop;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestIdentifier;

/** What became of each scenario, for the runner, which makes one matrix of all suites: {@code scenarios.tsv}. */
final class Matrix {
    /** What this SDK has no call for, and what takes something else than an SDK. */
    private static final Map<Integer, String> NOT_OFFERED = new TreeMap<>(Map.of(
        32, "a closed receiver keeps what it has prefetched until the locks end",
        70, "no call for batch deletion",
        76, "no HTTP client in the SDK",
        120, "no call for a list of sessions",
        121, "no call for a list of sessions",
        122, "no call for a list of sessions",
        123, "no call for a list of sessions",
        221, "takes six minutes and no SDK's own doing: rhea does it",
        300, "a storm is about the broker: Go makes it"));

    private final ConcurrentLinkedQueue<String> lines = new ConcurrentLinkedQueue<>();

    void add(TestIdentifier test, boolean hasPassed) {
        if (!(test.getSource().orElse(null) instanceof MethodSource source)) {
            return;
        }
        for (String part : source.getMethodName().split("_")) {
            if (!part.matches("s\\d+")) {
                break;
            }
            lines.add("S%02d\t%s\t".formatted(Integer.valueOf(part.substring(1)), hasPassed ? "pass" : "fail"));
        }
    }

    /** Of a part of the suite, only what has run is told. */
    void write(boolean isWhole) {
        String directory = System.getenv("JITNEY_WORK");
        if (directory == null) {
            return;
        }
        if (isWhole) {
            NOT_OFFERED.forEach((number, note) -> lines.add("S%02d\tnot offered\t%s".formatted(number, note)));
        }
        try {
            Files.write(Path.of(directory, "scenarios.tsv"), List.copyOf(lines));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}

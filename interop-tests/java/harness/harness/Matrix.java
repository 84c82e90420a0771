package harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestIdentifier;

/** What became of each scenario, for the runner, which makes one matrix of all suites: {@code scenarios.tsv}. */
final class Matrix {
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

    void write(Map<String, String> notOffered) {
        String directory = System.getenv("JITNEY_WORK");
        if (directory == null) {
            return;
        }
        notOffered.forEach((name, note) -> lines.add(name + "\tnot offered\t" + note));
        try {
            Files.write(Path.of(directory, "scenarios.tsv"), List.copyOf(lines));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}

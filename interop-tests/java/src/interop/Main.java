package interop;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectPackage;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestExecutionResult.Status;
import org.junit.platform.engine.TestTag;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs the topics and scenarios named, or all; prints one line for each, and the closing line that the runner reads. */
public final class Main {
    /** Scenarios mostly wait, for locks to expire and messages to come due: many run at once. */
    private static final Map<String, String> PARAMETERS = Map.of(
        "junit.jupiter.execution.parallel.enabled", "true",
        "junit.jupiter.execution.parallel.mode.default", "concurrent",
        "junit.jupiter.execution.parallel.config.strategy", "fixed",
        "junit.jupiter.execution.parallel.config.fixed.parallelism", "12",
        "junit.jupiter.execution.parallel.config.fixed.max-pool-size", "12",
        "junit.jupiter.execution.timeout.testable.method.default", "120 s",
        "junit.jupiter.execution.parallel.config.executor-service", "worker_thread_pool",
        "junit.jupiter.testclass.order.default", "org.junit.jupiter.api.ClassOrderer$OrderAnnotation",
        "junit.jupiter.displayname.generator.default", "org.junit.jupiter.api.DisplayNameGenerator$ReplaceUnderscores");

    public static void main(String[] words) {
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
            .selectors(selectPackage("interop"))
            .filters((PostDiscoveryFilter) test -> FilterResult.includedIf(isWanted(test, List.of(words))))
            .configurationParameters(PARAMETERS)
            .build();
        Report report = new Report();
        LauncherFactory.create().execute(request, report);
        String complaint = Place.end();
        if (!complaint.isEmpty()) {
            report.failed.incrementAndGet();
            Report.say("FAIL  " + complaint);
        }
        report.matrix.write(words.length == 0);
        System.out.printf("%d passed, %d failed%n", report.passed.get(), report.failed.get());
        System.exit(report.failed.get() == 0 && report.passed.get() > 0 ? 0 : 1);
    }

    /** A word is the name of a class, or the beginning of a scenario's name up to its number. */
    private static boolean isWanted(TestDescriptor test, List<String> words) {
        // What is at the guarded broker takes every door anyhow, and that broker is but one.
        if (!Connection.DOOR.isEmpty() && test.getTags().contains(TestTag.create("guarded"))) {
            return false;
        }
        if (words.isEmpty() || !(test.getSource().orElse(null) instanceof MethodSource source)) {
            return true;
        }
        List<String> parts = List.of(source.getMethodName().split("_"));
        String topic = source.getJavaClass().getSimpleName().toLowerCase(Locale.ROOT);
        return words.stream().map(word -> word.toLowerCase(Locale.ROOT))
            .anyMatch(word -> word.equals(topic) || parts.contains(word));
    }

    private static final class Report implements TestExecutionListener {
        final AtomicInteger passed = new AtomicInteger();
        final AtomicInteger failed = new AtomicInteger();
        final Matrix matrix = new Matrix();
        private final Map<String, Long> begun = new ConcurrentHashMap<>();

        @Override
        public void executionStarted(TestIdentifier test) {
            begun.put(test.getUniqueId(), System.nanoTime());
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            failed.incrementAndGet();
            say("FAIL  " + name(test) + ": skipped, " + reason);
            matrix.add(test, false);
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            boolean isFailure = result.getStatus() != Status.SUCCESSFUL;
            if (!test.isTest() && !isFailure) {
                return;
            }
            (isFailure ? failed : passed).incrementAndGet();
            matrix.add(test, !isFailure);
            long milliseconds = (System.nanoTime() - begun.get(test.getUniqueId())) / 1_000_000;
            say((isFailure ? "FAIL  " : "ok    ") + name(test) + " (" + milliseconds + " ms)"
                + result.getThrowable().map(Report::described).orElse(""));
        }

        private static void say(String line) {
            System.out.println(line);
            System.out.flush();
        }

        private static String name(TestIdentifier test) {
            String name = test.getDisplayName().replace("()", "");
            return name.isEmpty() ? name : Character.toUpperCase(name.charAt(0)) + name.substring(1);
        }

        /** The failure, where in our code it came about, and its causes. */
        private static String described(Throwable failure) {
            StringBuilder text = new StringBuilder();
            for (Throwable each = failure; each != null; each = each.getCause()) {
                text.append("\n      ").append(each.toString().replace("\n", "\n      "));
                Stream.of(each.getStackTrace()).filter(frame -> frame.getClassName().startsWith("interop."))
                    .limit(6).forEach(frame -> text.append("\n        at ").append(frame));
            }
            return text.toString();
        }
    }
}

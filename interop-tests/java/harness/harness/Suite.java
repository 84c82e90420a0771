package harness;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectPackage;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestExecutionResult.Status;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Shared by the suites in Java: runs the topics and scenarios named, or all of a package; prints a line for each. */
public final class Suite {
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

    private Suite() { }

    /**
     * Runs a suite and ends the process.
     *
     * @param words topics and scenarios; none means all
     * @param home the package of the scenarios
     * @param isMeant says of a scenario whether it is to run here at all
     * @param end ends what the scenarios share
     */
    public static void run(String[] words, String home, Predicate<TestDescriptor> isMeant, Runnable end) {
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
            .selectors(selectPackage(home))
            .filters((PostDiscoveryFilter) test ->
                FilterResult.includedIf(isMeant.test(test) && isWanted(test, List.of(words))))
            .configurationParameters(PARAMETERS)
            .build();
        Report report = new Report(home);
        LauncherFactory.create().execute(request, report);
        end.run();
        System.exit(0);
    }

    /** A word is the name of a class, or the beginning of a scenario's name up to its number. */
    private static boolean isWanted(TestDescriptor test, List<String> words) {
        if (words.isEmpty() || !(test.getSource().orElse(null) instanceof MethodSource source)) {
            return true;
        }
        List<String> parts = List.of(source.getMethodName().split("_"));
        String topic = source.getJavaClass().getSimpleName().toLowerCase(Locale.ROOT);
        return words.stream().map(word -> word.toLowerCase(Locale.ROOT))
            .anyMatch(word -> word.equals(topic) || parts.contains(word));
    }

    private static final class Report implements TestExecutionListener {
        private final String home;
        private final Map<String, Long> begun = new ConcurrentHashMap<>();

        Report(String home) {
            this.home = home + ".";
        }

        @Override
        public void executionStarted(TestIdentifier test) {
            begun.put(test.getUniqueId(), System.nanoTime());
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            say("FAIL  " + name(test) + ": skipped, " + reason);
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            boolean isFailure = result.getStatus() != Status.SUCCESSFUL;
            if (!test.isTest() && !isFailure) {
                return;
            }
            long milliseconds = (System.nanoTime() - begun.get(test.getUniqueId())) / 1_000_000;
            say((isFailure ? "FAIL  " : "ok    ") + name(test) + " (" + milliseconds + " ms)"
                + result.getThrowable().map(this::described).orElse(""));
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
        private String described(Throwable failure) {
            StringBuilder text = new StringBuilder();
            for (Throwable each = failure; each != null; each = each.getCause()) {
                text.append("\n      ").append(each.toString().replace("\n", "\n      "));
                Stream.of(each.getStackTrace()).filter(frame -> frame.getClassName().startsWith(home))
                    .limit(6).forEach(frame -> text.append("\n        at ").append(frame));
            }
            return text.toString();
        }
    }
}

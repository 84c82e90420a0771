import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** What the programs in Java share: they run the steps that STEPS names and print an outcome of each. */
final class Steps {
    static final Duration SOON = Duration.ofSeconds(15);
    /** What a step may take. */
    private static final long STEP_SECONDS = 60;

    private Steps() { }

    interface Step {
        void run() throws Exception;
    }

    /** Receives at most so many messages. */
    interface Receive<M> {
        Iterable<M> upTo(int count) throws Exception;
    }

    static void check(boolean condition, String text) {
        if (!condition) {
            throw new AssertionError(text);
        }
    }

    /** As many messages, which may come in several answers. */
    static <M> List<M> collect(Receive<M> receive, int count) throws Exception {
        List<M> found = new ArrayList<>();
        Instant deadline = Instant.now().plus(SOON);
        while (found.size() < count && Instant.now().isBefore(deadline)) {
            Iterable<M> some = receive.upTo(count - found.size());
            if (some != null) {
                some.forEach(found::add);
            }
        }
        check(found.size() == count, found.size() + " messages of " + count);
        return found;
    }

    static void run(Map<String, Step> steps) {
        ExecutorService threads = Executors.newCachedThreadPool();
        for (String name : System.getenv("STEPS").split(" ")) {
            Step step = steps.get(name);
            if (step == null) {
                System.out.println("STEP " + name + " absent");
                continue;
            }
            Future<?> done = threads.submit((Callable<Void>) () -> {
                step.run();
                return null;
            });
            try {
                done.get(STEP_SECONDS, TimeUnit.SECONDS);
                System.out.println("STEP " + name + " passed");
            } catch (Exception error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                System.out.println("STEP " + name + " failed " + cause.toString().replaceAll("\\s+", " "));
                for (StackTraceElement each : cause.getStackTrace()) {
                    System.out.println("    at " + each);
                }
            }
        }
        // What a client leaves open must not keep the program.
        System.exit(0);
    }
}

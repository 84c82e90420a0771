package example;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Store;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * One Jitney for the tests of a JVM, and a namespace of its own for each test that has a parameter of type
 * {@link Namespace}. Copy this file and Config.json, and annotate the class of the tests with
 * {@code @ExtendWith(Jitney.class)}. It needs JUnit 5.13 or later.
 *
 * <p>JITNEY_BINARY names the program; without it, {@code jitney} is looked for in PATH.
 */
public class Jitney implements ParameterResolver {
    private static final ExtensionContext.Namespace STORE = ExtensionContext.Namespace.create(Jitney.class);
    private static final int SECONDS = 30;

    /**
     * A namespace of one test.
     *
     * @param connectionString its host is NAME.localhost
     * @param endpoint the broker's address, for {@code customEndpointAddress}: not every machine resolves names below
     *     localhost
     */
    public record Namespace(String connectionString, String endpoint) {}

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Namespace.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        Store all = context.getRoot().getStore(STORE);
        Broker broker = all.getOrComputeIfAbsent(Broker.class, key -> new Broker(), Broker.class);
        Store own = context.getStore(STORE);
        return own.getOrComputeIfAbsent(Lease.class, key -> new Lease(broker), Lease.class).namespace;
    }

    /** A namespace until the end of its test, when the store closes it. */
    private static final class Lease implements AutoCloseable {
        private final Broker broker;
        private final String name = "test-" + UUID.randomUUID();
        private final Namespace namespace;

        Lease(Broker broker) {
            this.broker = broker;
            broker.request("PUT", name, broker.config);
            String connectionString = broker.connectionString.replace(broker.address, name + "." + broker.address);
            namespace = new Namespace(connectionString, "http://" + broker.address);
        }

        @Override
        public void close() {
            broker.request("DELETE", name, "");
        }
    }

    /** The broker until the end of the last test. */
    private static final class Broker implements AutoCloseable {
        private static final Pattern STRING = Pattern.compile("Endpoint=sb://(localhost:\\d+);[^\\s\"]+");

        private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        private final Process process;
        /** Every namespace has the entities of this file. */
        private final String config;
        private final String connectionString;
        private final String address;

        Broker() {
            String program = System.getenv().getOrDefault("JITNEY_BINARY", "jitney");
            try (InputStream file = Jitney.class.getResourceAsStream("/Config.json")) {
                config = new String(file.readAllBytes());
                // The broker stops when its input is closed, which the system does when this JVM ends, however it ends.
                process = new ProcessBuilder(program, "serve", "--ephemeral", "--config-json", config,
                    "--amqp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--stop-on-stdin-close")
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
            } catch (IOException error) {
                String text = "There is no program jitney in PATH, nor where JITNEY_BINARY says.";
                throw new UncheckedIOException(text, error);
            }
            var started = new CompletableFuture<String>();
            var reader = new Thread(() -> readLog(started), "log of the broker");
            reader.setDaemon(true);
            reader.start();
            CompletableFuture.delayedExecutor(SECONDS, TimeUnit.SECONDS).execute(() -> {
                if (!started.isDone()) {
                    process.destroyForcibly();
                }
            });
            connectionString = started.join();
            var found = STRING.matcher(connectionString);
            found.find();
            address = found.group(1);
        }

        /** Reads it to its end, so that the broker never waits for that. */
        private void readLog(CompletableFuture<String> started) {
            var log = new StringBuilder();
            try (var lines = process.errorReader()) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    var found = STRING.matcher(line);
                    if (found.find()) {
                        started.complete(found.group());
                    } else if (!started.isDone()) {
                        log.append(line).append('\n');
                    }
                }
            } catch (IOException error) {
                log.append(error);
            }
            started.completeExceptionally(new IllegalStateException("The broker has not started:\n" + log));
        }

        void request(String method, String name, String body) {
            var request = HttpRequest.newBuilder(URI.create("http://" + address + "/api/v1/namespaces/" + name))
                .method(method, BodyPublishers.ofString(body)).timeout(Duration.ofSeconds(SECONDS)).build();
            try {
                var answer = client.send(request, BodyHandlers.ofString());
                if (answer.statusCode() >= 300) {
                    String text = method + " " + name + ": " + answer.statusCode() + " " + answer.body();
                    throw new IllegalStateException(text);
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void close() throws Exception {
            process.getOutputStream().close();
            process.waitFor(SECONDS, TimeUnit.SECONDS);
        }
    }
}

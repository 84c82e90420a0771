package interop;

import com.azure.core.http.policy.ExponentialBackoffOptions;
import com.azure.core.http.policy.HttpPipelinePolicy;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.util.UrlBuilder;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * A running broker, and how it is reached.
 *
 * <p>There are two: the open one, which takes any key for good, and the secured one ({@code secured.py}). That one is at
 * an address of its own, with the ports that the SDK takes when a connection string names none, and a certificate for
 * that address. The JVM trusts its authority, and not the open broker's.
 *
 * @param amqp the address of the first listener, which answers every protocol
 * @param http the address of the second, which does so too
 * @param key the key of {@link #ROOT}
 * @param control the command that handles this broker
 */
record Endpoint(String amqp, String http, String key, List<String> control) {
    static final String ROOT = "RootManageSharedAccessKey";

    /** Where the secured broker is, in place of a namespace. */
    static final String NAMESPACE = environment("JITNEY_SECURED_ADDRESS");

    /** Keys of the secured broker's namespace. */
    static final String LISTENER_KEY = "bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=";
    static final String SPEAKER_KEY = "c3BlYWtlciBrZXkgb2YgdGhlIGd1YXJkZWQgb25lISE=";
    private static final String ROOT_KEY = "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==";

    private static ServiceBusAdministrationClient administrator;

    /** The broker of the suite. */
    static Endpoint open() {
        return at("JITNEY_", "BROKER_CONTROL", "SAS_KEY_VALUE");
    }

    /** The broker that verifies keys. */
    static Endpoint secured() {
        return at("JITNEY_SECURED_", "CONTROL", ROOT_KEY);
    }

    private static Endpoint at(String prefix, String control, String key) {
        return new Endpoint("localhost:" + environment(prefix + "AMQP_PORT"), "localhost:" + environment(prefix + "HTTP_PORT"), key,
            List.of(environment(prefix + control).split(" ")));
    }

    private static String environment(String name) {
        return Objects.requireNonNull(System.getenv(name), () -> "the runner says no " + name);
    }

    /** Asks the broker to {@code start}, {@code kill} or {@code stop}; fails when it does not, or ends badly. */
    void control(String verb) {
        List<String> command = new ArrayList<>(control);
        command.add(verb);
        run(command);
    }

    /** Runs a command to its end, which must be a good one; returns what it prints. */
    static String run(List<String> command) {
        try {
            Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (process.waitFor() != 0) {
                throw new AssertionError("failed: " + String.join(" ", command));
            }
            return output;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            throw new AssertionError(error);
        }
    }

    /** A connection string with a key. */
    static String keyed(String host, String name, String key) {
        return "Endpoint=sb://" + host + "/;SharedAccessKeyName=" + name + ";SharedAccessKey=" + key;
    }

    /** A connection string with a key, to where the secured broker stands in for a namespace. */
    static String keyed(String name, String key) {
        return keyed(NAMESPACE, name, key);
    }

    /** A connection string with a signature in place of a key. */
    static String bearing(String signature) {
        return "Endpoint=sb://" + NAMESPACE + "/;SharedAccessSignature=" + signature;
    }

    /** The secured broker's administrator. */
    static synchronized ServiceBusAdministrationClient administrator() {
        if (administrator == null) {
            administrator = administrators(keyed(ROOT, secured().key)).buildClient();
        }
        return administrator;
    }

    /** Administrators that try once more, soon, and then give up. */
    static ServiceBusAdministrationClientBuilder administrators(String connectionString) {
        return new ServiceBusAdministrationClientBuilder().connectionString(connectionString).retryOptions(
            new RetryOptions(new ExponentialBackoffOptions().setMaxRetries(1).setBaseDelay(Duration.ofMillis(200))));
    }

    /** Sends requests, signed for the address that the SDK means, by another scheme to another address. */
    static HttpPipelinePolicy goingTo(String scheme, String address) {
        String[] parts = address.split(":");
        return (context, next) -> {
            UrlBuilder url = UrlBuilder.parse(context.getHttpRequest().getUrl());
            context.getHttpRequest().setUrl(url.setScheme(scheme).setHost(parts[0]).setPort(parts[1]).toString());
            return next.process();
        };
    }
}

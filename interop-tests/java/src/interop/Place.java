package interop;

import com.azure.core.http.policy.ExponentialBackoffOptions;
import com.azure.core.http.policy.HttpPipelinePolicy;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.util.UrlBuilder;
import com.azure.json.JsonProviders;
import com.azure.json.JsonReader;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/**
 * A running broker, and how it is reached.
 *
 * <p>There are two: the open one, which the runner started and which takes any key for good, and the guarded one, which
 * the first scenario that asks for it starts. It stands where a namespace would: on an address of its own, with the
 * ports that the SDK takes when a connection string names none, and a certificate for that address. The JVM trusts its
 * authority, and not the open broker's.
 *
 * @param amqp the address of the first listener, which answers every protocol
 * @param http the address of the second, which does so too
 * @param key the key of {@link #ROOT}
 * @param control the command that handles this broker
 * @param issuer the key of the tokens that are good there, if any are
 */
record Place(String amqp, String http, String key, List<String> control, KeyPair issuer) {
    static final String ROOT = "RootManageSharedAccessKey";

    /** Where the guarded broker is, in place of a namespace. Its ports are fixed: each run has an address of its own. */
    static final String NAMESPACE = "127.0.24." + (1 + ProcessHandle.current().pid() % 254);

    /** Keys of the guarded broker's namespace. */
    static final String LISTENER_KEY = "a2V5IG9mIHRoZSBsaXN0ZW5lciwgaW4gYSBmaWxlISE=";
    static final String SPEAKER_KEY = "a2V5IG9mIHRoZSBzcGVha2VyLCBpbiBhIGZpbGUhISE=";
    private static final String ROOT_KEY = "a2V5IG9mIHRoZSByb290LCB3aGljaCBtYXkgYWxsISE=";

    private static final String GUARDED_CONFIG = """
        { "UserConfig": { "Namespaces": [ {
          "Name": "guarded",
          "AuthorizationRules": [
            { "Name": "%s", "Rights": ["Manage", "Send", "Listen"], "PrimaryKey": "%s" },
            { "Name": "listener", "Rights": ["Listen"], "PrimaryKey": "%s" },
            { "Name": "speaker", "Rights": ["Send"], "PrimaryKey": "other", "SecondaryKey": "%s" }
          ],
          "Queues": [], "Topics": []
        } ] } }
        """.formatted(ROOT, ROOT_KEY, LISTENER_KEY, SPEAKER_KEY);

    private static Place guarded;
    private static ServiceBusAdministrationClient administrator;

    /** The broker of the suite. */
    static Place open() {
        return new Place("localhost:" + environment("JITNEY_AMQP_PORT"), "localhost:" + environment("JITNEY_HTTP_PORT"),
            "SAS_KEY_VALUE", List.of(environment("JITNEY_BROKER_CONTROL").split(" ")), null);
    }

    /** The broker that verifies keys. */
    static synchronized Place guarded() {
        if (guarded == null) {
            guarded = startGuarded();
        }
        return guarded;
    }

    /** Stops the guarded broker, if it was started, and says what was wrong with it, or nothing. */
    static synchronized String end() {
        if (guarded == null) {
            return "";
        }
        try {
            guarded.control("stop");
            String log = Files.readString(directory().resolve("broker.log"));
            return log.contains("panicked at") ? "the guarded broker panicked" : "";
        } catch (Exception | AssertionError error) {
            return "the guarded broker: " + error;
        }
    }

    private static Place startGuarded() {
        try {
            Path directory = Files.createDirectories(directory());
            Path certificates = trust(directory.resolve("certs"));
            KeyPair issuer = Issuer.key();
            Path keys = Files.writeString(directory.resolve("keys.json"), Issuer.keySet(issuer));
            Path config = Files.writeString(directory.resolve("config.json"), GUARDED_CONFIG);
            int amqp = freePort();
            int http = freePort();
            Map<String, Object> state = described();
            state.put("config", config.toString());
            state.put("data_dir", directory.resolve("data").toString());
            state.put("log", directory.resolve("broker.log").toString());
            state.put("amqp_port", amqp);
            state.put("http_port", http);
            state.put("arguments", List.of(
                "--auth", "sas", "--oidc-issuer", Issuer.NAME, "--oidc-jwks", keys.toString(),
                "--amqps", NAMESPACE + ":5671", "--https", NAMESPACE + ":443",
                "--tls-cert", certificates.resolve("server.pem").toString(),
                "--tls-key", certificates.resolve("server.key").toString()));
            state.put("pid", null);
            state.put("exit_code", null);
            Path file = directory.resolve("broker.json");
            Files.writeString(file, Issuer.json(state));

            // The runner's command, with another state file.
            List<String> control = new ArrayList<>(open().control);
            control.set(control.size() - 1, file.toString());
            Place place = new Place("localhost:" + amqp, "localhost:" + http, ROOT_KEY, control, issuer);
            place.control("start");
            return place;
        } catch (Exception error) {
            throw new AssertionError("the guarded broker: " + error.getMessage(), error);
        }
    }

    /** Has the broker's own command make an authority and a certificate; this JVM trusts the authority from now on. */
    private static Path trust(Path directory) throws Exception {
        run(List.of(described().get("binary").toString(), "certs", directory.toString(),
            "--name", NAMESPACE, "--name", "localhost"));
        System.setProperty("javax.net.ssl.trustStore", directory.resolve("ca.p12").toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "changeit");
        return directory;
    }

    private static Path directory() {
        return Path.of(environment("JITNEY_WORK"), "guarded");
    }

    private static Map<String, Object> described() throws IOException {
        String text = Files.readString(Path.of(environment("JITNEY_BROKER_STATE")));
        try (JsonReader reader = JsonProviders.createReader(text)) {
            return reader.readMap(JsonReader::readUntyped);
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private static String environment(String name) {
        return Objects.requireNonNull(System.getenv(name), () -> "the runner says no " + name);
    }

    /** Asks the broker to {@code start}, {@code kill} or {@code stop}; fails when it does not, or ends badly. */
    void control(String verb) throws Exception {
        List<String> command = new ArrayList<>(control);
        command.add(verb);
        run(command);
    }

    /** Runs a command to its end, which must be a good one. */
    static void run(List<String> command) throws Exception {
        Process process = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != 0) {
            process.destroyForcibly();
            throw new AssertionError("failed: " + String.join(" ", command));
        }
    }

    /** A connection string with a key. */
    static String keyed(String host, String name, String key) {
        return "Endpoint=sb://" + host + "/;SharedAccessKeyName=" + name + ";SharedAccessKey=" + key;
    }

    /** A connection string with a key, to where the guarded broker stands in for a namespace. */
    static String keyed(String name, String key) {
        return keyed(NAMESPACE, name, key);
    }

    /** A connection string with a signature in place of a key. */
    static String bearing(String signature) {
        return "Endpoint=sb://" + NAMESPACE + "/;SharedAccessSignature=" + signature;
    }

    /** The guarded broker's administrator. */
    static synchronized ServiceBusAdministrationClient administrator() {
        if (administrator == null) {
            administrator = administrators(keyed(ROOT, guarded().key)).buildClient();
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

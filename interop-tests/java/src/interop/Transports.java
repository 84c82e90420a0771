package interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import java.io.File;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.ConsoleHandler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("secured")
class Transports extends Scenarios {
    private static final Logger TLS_LOG = Logger.getLogger("org.apache.qpid.proton.engine.impl.ssl");

    private static final Endpoint SECURED = Endpoint.secured();

    /** Every address of the secured broker; the first is without a port, which the SDK adds. */
    private static final List<String> ADDRESSES =
        List.of(Endpoint.NAMESPACE, Endpoint.NAMESPACE + ":443", Endpoint.NAMESPACE + ":5671", SECURED.amqp(), SECURED.http());

    @Test
    void s261_amqps_on_every_port() throws Exception {
        Endpoint.administrator().createQueue("s261");
        for (String address : ADDRESSES) {
            roundTrip(connect(Endpoint.keyed(address, Endpoint.ROOT, SECURED.key())), "s261");
        }
    }

    /** A connection goes where the endpoint of a gateway is; what is in it is meant for the namespace. */
    @Test
    void s261_amqps_and_websockets_by_a_custom_endpoint() {
        Endpoint.administrator().createQueue("s261c");
        String namespace = Endpoint.keyed("production.invalid", Endpoint.ROOT, SECURED.key());
        for (String port : List.of("5671", "443")) {
            roundTrip(connect(namespace).by("https://" + Endpoint.NAMESPACE + ":" + port), "s261c");
            roundTrip(connect(namespace).by("https://" + Endpoint.NAMESPACE + ":" + port).overWebSockets(), "s261c");
        }
    }

    /** Protocols and trust are settled for a whole JVM: this is another, which has both from its command line. */
    private static void alone(String protocol, String queue, String transport) throws Exception {
        Endpoint.run(List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx128m", "-XX:TieredStopAtLevel=1",
            "-Djdk.tls.client.protocols=" + protocol,
            "-Djavax.net.ssl.trustStore=" + System.getProperty("javax.net.ssl.trustStore"),
            "-Djavax.net.ssl.trustStorePassword=changeit",
            "-cp", System.getProperty("java.class.path").replace("target/", new File("target").getAbsolutePath() + "/"),
            SeparateProcess.class.getName(), Endpoint.keyed(Endpoint.ROOT, SECURED.key()), queue, transport));
    }

    @Test
    void s261_amqps_with_tls_1_2() throws Exception {
        Endpoint.administrator().createQueue("s261b");
        alone("TLSv1.2", "s261b", "amqps");
    }

    /** A close frame of two bytes alone, without a reason, would have the SDK read it for ever. */
    @Test
    void s263_a_websocket_that_is_closed_leaves_nothing_running() throws Exception {
        Endpoint.administrator().createQueue("s263c");
        alone("TLSv1.3", "s263c", "wss");
    }

    /** The open broker has an authority of its own. Why there is no connection only a log of the SDK's tells. */
    @Test
    void s262_a_client_that_does_not_trust_the_authority_is_not_served() {
        List<String> told = new CopyOnWriteArrayList<>();
        TLS_LOG.setUseParentHandlers(false);
        TLS_LOG.addHandler(new ConsoleHandler() {
            @Override
            public void publish(LogRecord line) {
                told.add(line.getMessage());
            }
        });
        String string = Endpoint.keyed(Endpoint.open().amqp(), Endpoint.ROOT, Endpoint.open().key());
        Connection connection = connect(string, Duration.ofSeconds(2));
        assertThrows(RuntimeException.class, () -> connection.sender("s01").sendMessage(message(1)));
        assertTrue(told.stream().anyMatch(line -> line.contains("PKIX path building failed")), told::toString);

        ServiceBusAdministrationClient administrator =
            Endpoint.administrators(string).addPolicy(Endpoint.goingTo("https", Endpoint.open().amqp())).buildClient();
        saysWhy("PKIX path", assertThrows(RuntimeException.class, () -> administrator.getQueue("s01")));
    }

    @Test
    void s263_websockets_on_every_port() {
        Endpoint.administrator().createQueue("s263");
        for (String address : ADDRESSES) {
            roundTrip(connect(Endpoint.keyed(address, Endpoint.ROOT, SECURED.key())).overWebSockets(), "s263");
        }
    }

    /** The SDK means TLS with WebSockets then too, but trusts everybody. */
    @Test
    void s263_websockets_with_the_emulators_connection_string() {
        Endpoint.administrator().createQueue("s263e");
        String keyed = Endpoint.keyed(SECURED.http(), Endpoint.ROOT, SECURED.key());
        roundTrip(connect(keyed + ";UseDevelopmentEmulator=true").overWebSockets(), "s263e");
    }

    @Test
    void s263_messages_of_many_sizes_at_full_speed_over_a_websocket() {
        Endpoint.administrator().createQueue("s263m");
        Connection connection = connect(Endpoint.keyed(Endpoint.ROOT, SECURED.key())).overWebSockets();
        ServiceBusSenderClient sender = connection.sender("s263m");
        List<Integer> sizes = IntStream.range(0, 600).map(n -> n * n % 20_011 + 1).boxed().toList();
        for (int first = 0; first < sizes.size(); first += 10) {
            sender.sendMessages(sizes.subList(first, first + 10).stream().map(Scenarios::ofSize).toList());
        }
        ServiceBusReceiverClient receiver = connection.keep(connection.receivers("s263m")
            .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).prefetchCount(500).buildClient());
        List<ServiceBusReceivedMessage> messages = receive(receiver, sizes.size());
        for (int index = 0; index < sizes.size(); index += 1) {
            assertArrayEquals(pattern(sizes.get(index)), messages.get(index).getBody().toBytes());
        }
    }

    @Test
    void s263_sessions_and_batches_over_a_websocket() {
        Endpoint.administrator().createQueue("s263s", new CreateQueueOptions().setSessionRequired(true));
        Connection connection = connect(Endpoint.keyed(Endpoint.ROOT, SECURED.key())).overWebSockets();
        List<ServiceBusMessage> batch =
            IntStream.rangeClosed(1, 100).mapToObj(body -> inSession("x", String.valueOf(body))).toList();
        connection.sender("s263s").sendMessages(batch);
        ServiceBusReceiverClient receiver = connection.nextSession("s263s");
        List<ServiceBusReceivedMessage> messages = receive(receiver, 100);
        assertEquals(texts(1, 100), bodies(messages));
        receiver.setSessionState(pattern(100 * 1024));
        assertArrayEquals(pattern(100 * 1024), receiver.getSessionState());
        completeAll(receiver, messages);
    }
}

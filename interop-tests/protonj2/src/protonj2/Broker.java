package protonj2;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.protonj2.client.Client;
import org.apache.qpid.protonj2.client.Connection;
import org.apache.qpid.protonj2.client.ConnectionOptions;
import org.apache.qpid.protonj2.client.Delivery;
import org.apache.qpid.protonj2.client.DeliveryState;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.Receiver;
import org.apache.qpid.protonj2.client.ReceiverOptions;
import org.apache.qpid.protonj2.client.Sender;
import org.apache.qpid.protonj2.client.Tracker;

/** Connections to the suite's broker, and what the tests do on them. */
final class Broker {
    private static final int SECONDS = 20;

    private Broker() { }

    static String environment(String name) {
        return Objects.requireNonNull(System.getenv(name), name);
    }

    static Connection connect(ConnectionOptions options) throws Exception {
        options.user("RootManageSharedAccessKey").password("SAS_KEY_VALUE");
        return Client.create().connect("localhost", Integer.parseInt(environment("JITNEY_AMQP_PORT")), options).openFuture()
            .get(SECONDS, TimeUnit.SECONDS);
    }

    static Connection connect() throws Exception {
        return connect(new ConnectionOptions());
    }

    /** `kill`, `stop` or `start`: returns when it is done. */
    static void control(String verb) throws Exception {
        String[] words = (environment("JITNEY_BROKER_CONTROL") + " " + verb).split(" ");
        assertEquals(0, new ProcessBuilder(words).inheritIO().start().waitFor());
    }

    /** A receiver that takes what it asks for, and settles by itself. */
    static Receiver receiver(Connection connection, String queue) throws Exception {
        return connection.openReceiver(queue, new ReceiverOptions().creditWindow(0).autoAccept(false).autoSettle(false)).openFuture()
            .get(SECONDS, TimeUnit.SECONDS);
    }

    static Sender sender(Connection connection, String queue) throws Exception {
        return connection.openSender(queue).openFuture().get(SECONDS, TimeUnit.SECONDS);
    }

    static void send(Sender sender, String... bodies) throws Exception {
        for (String body : bodies) {
            send(sender, Message.create(body));
        }
    }

    static void send(Sender sender, Message<?> message) throws Exception {
        Tracker tracker = sender.send(message).awaitSettlement(SECONDS, TimeUnit.SECONDS);
        assertEquals(DeliveryState.Type.ACCEPTED, tracker.remoteState().getType());
    }

    static Delivery next(Receiver receiver) throws Exception {
        receiver.addCredit(1);
        return arrived(receiver);
    }

    /** A delivery for which there is credit already. */
    static Delivery arrived(Receiver receiver) throws Exception {
        Delivery delivery = receiver.receive(SECONDS, TimeUnit.SECONDS);
        assertNotNull(delivery, "no message");
        return delivery;
    }

    static void nothing(Receiver receiver) throws Exception {
        receiver.addCredit(1);
        receiver.drain().get(SECONDS, TimeUnit.SECONDS);
        assertNull(receiver.tryReceive(), "there is a message");
    }

    static String body(Delivery delivery) throws Exception {
        Message<String> message = delivery.message();
        return message.body();
    }
}

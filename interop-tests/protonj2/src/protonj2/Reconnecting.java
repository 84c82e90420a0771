package protonj2;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.TimeUnit;
import org.apache.qpid.protonj2.client.Connection;
import org.apache.qpid.protonj2.client.ConnectionOptions;
import org.apache.qpid.protonj2.client.Delivery;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.Receiver;
import org.apache.qpid.protonj2.client.ReceiverOptions;
import org.apache.qpid.protonj2.client.Sender;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;

/** The client's own reconnection, while the broker is killed. Last, and alone: it is the broker of all tests. */
@Order(Integer.MAX_VALUE)
@org.junit.jupiter.api.parallel.Isolated
class Reconnecting {
    @Test
    void links_are_attached_again_after_a_kill() throws Exception {
        ConnectionOptions options = new ConnectionOptions();
        options.reconnectEnabled(true).reconnectOptions().reconnectDelay(100).maxReconnectDelay(500);
        try (Connection connection = Broker.connect(options)) {
            Sender sender = Broker.sender(connection, "s09");
            Receiver receiver = connection.openReceiver("s09", new ReceiverOptions().creditWindow(5));
            Broker.send(sender, "before");
            assertEquals("before", taken(receiver));
            Broker.control("kill");
            Broker.control("start");
            Broker.send(sender, Message.create("after"));
            // What was not accepted before the kill comes again.
            String body = taken(receiver);
            assertEquals("after", body.equals("before") ? taken(receiver) : body);
        }
    }

    private static String taken(Receiver receiver) throws Exception {
        Delivery delivery = receiver.receive(30, TimeUnit.SECONDS);
        return Broker.body(delivery);
    }
}

package protonj2;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.InputStream;
import java.io.OutputStream;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.protonj2.client.Connection;
import org.apache.qpid.protonj2.client.Delivery;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.Receiver;
import org.apache.qpid.protonj2.client.ReceiverOptions;
import org.apache.qpid.protonj2.client.Sender;
import org.apache.qpid.protonj2.client.Session;
import org.apache.qpid.protonj2.client.StreamDelivery;
import org.apache.qpid.protonj2.client.StreamReceiver;
import org.apache.qpid.protonj2.client.StreamSender;
import org.apache.qpid.protonj2.client.StreamSenderMessage;
import org.apache.qpid.protonj2.client.exceptions.ClientException;
import org.junit.jupiter.api.Test;

/** Links, outcomes, credit, streams and transactions. Each test has a queue of ../config.json for itself. */
class Links {
    @Test
    void a_message_comes_as_it_was_sent() throws Exception {
        try (Connection connection = Broker.connect()) {
            Message<Object> sent = Message.create((Object) Map.of("list", List.of(1, "two"), "number", 7L));
            sent.messageId("id").correlationId("c").subject("s").contentType("text/x").priority((byte) 7).durable(true);
            sent.property("number", 7).property("text", "ä").annotation("x-opt-own", "a");
            Broker.send(Broker.sender(connection, "s01"), sent);
            Delivery delivery = Broker.next(Broker.receiver(connection, "s01"));
            Message<Object> received = delivery.message();
            assertEquals(Map.of("list", List.of(1, "two"), "number", 7L), received.body());
            assertEquals(List.of("id", "c", "s", "text/x"),
                List.of(received.messageId(), received.correlationId(), received.subject(), received.contentType()));
            assertEquals(7, received.property("number"));
            assertEquals("ä", received.property("text"));
            assertEquals("a", received.annotation("x-opt-own"));
            assertTrue(received.annotation("x-opt-sequence-number") instanceof Long);
            delivery.accept();
        }
    }

    @Test
    void every_outcome() throws Exception {
        try (Connection connection = Broker.connect()) {
            Broker.send(Broker.sender(connection, "s03"), "accepted", "released", "modified", "rejected", "deferred");
            Receiver receiver = Broker.receiver(connection, "s03");
            Broker.next(receiver).accept();
            Delivery released = Broker.next(receiver);
            Delivery modified = Broker.next(receiver);
            Broker.next(receiver).reject("own:condition", "a description");
            Broker.next(receiver).modified(true, true);
            released.release();
            Delivery again = Broker.next(receiver);
            assertEquals("released", Broker.body(again));
            assertEquals(0, again.message().deliveryCount());
            again.accept();
            modified.modified(true, false);
            Delivery abandoned = Broker.next(receiver);
            assertEquals("modified", Broker.body(abandoned));
            assertEquals(1, abandoned.message().deliveryCount());
            abandoned.accept();
            Broker.nothing(receiver);
            Delivery letter = Broker.next(Broker.receiver(connection, "s03/$DeadLetterQueue"));
            assertEquals("rejected", Broker.body(letter));
            assertEquals("own:condition", letter.message().property("DeadLetterReason"));
            letter.accept();
        }
    }

    @Test
    void credit_and_drain() throws Exception {
        try (Connection connection = Broker.connect()) {
            Broker.send(Broker.sender(connection, "s04"), "1", "2", "3");
            Receiver receiver = Broker.receiver(connection, "s04");
            receiver.addCredit(2);
            Delivery first = Broker.arrived(receiver);
            Delivery second = Broker.arrived(receiver);
            assertEquals(List.of("1", "2"), List.of(Broker.body(first), Broker.body(second)));
            assertNull(receiver.receive(300, TimeUnit.MILLISECONDS));
            receiver.addCredit(10);
            Delivery third = Broker.arrived(receiver);
            receiver.drain().get(10, TimeUnit.SECONDS);
            assertNull(receiver.tryReceive());
            for (Delivery each : List.of(first, second, third)) {
                each.accept();
            }
        }
    }

    /** A window of credit that the client renews by itself, and a thousand messages sent without waiting. */
    @Test
    void many_messages_by_a_window() throws Exception {
        try (Connection connection = Broker.connect()) {
            Sender sender = Broker.sender(connection, "s05");
            Receiver receiver = connection.openReceiver("s05", new ReceiverOptions().creditWindow(20));
            for (int number = 0; number < 1000; number++) {
                sender.send(Message.create("" + number));
            }
            for (int number = 0; number < 1000; number++) {
                assertEquals("" + number, Broker.body(Broker.arrived(receiver)));
            }
        }
    }

    /** Written and read in parts, in many frames. */
    @Test
    void a_message_as_a_stream() throws Exception {
        byte[] sent = new byte[900_000];
        new Random(1).nextBytes(sent);
        try (Connection connection = Broker.connect()) {
            StreamSender sender = connection.openStreamSender("s06");
            StreamSenderMessage message = sender.beginMessage();
            message.messageId("streamed");
            try (OutputStream body = message.body()) {
                for (int from = 0; from < sent.length; from += 90_000) {
                    body.write(sent, from, 90_000);
                    body.flush();
                }
            }
            message.tracker().awaitSettlement(20, TimeUnit.SECONDS);
            StreamReceiver receiver = connection.openStreamReceiver("s06");
            StreamDelivery delivery = receiver.receive(20, TimeUnit.SECONDS);
            try (InputStream body = delivery.message().body()) {
                assertArrayEquals(sent, body.readAllBytes());
            }
            assertEquals("streamed", delivery.message().messageId());
            delivery.accept();
        }
    }

    @Test
    void transactions() throws Exception {
        try (Connection connection = Broker.connect()) {
            Session session = connection.openSession().openFuture().get(20, TimeUnit.SECONDS);
            Sender sender = session.openSender("s07");
            Receiver receiver = session.openReceiver("s07", new ReceiverOptions().creditWindow(0).autoAccept(false));
            session.beginTransaction();
            sender.send(Message.create("rolled back"));
            session.rollbackTransaction();
            Broker.nothing(receiver);
            session.beginTransaction();
            sender.send(Message.create("committed"));
            session.commitTransaction();
            session.beginTransaction();
            Delivery delivery = Broker.next(receiver);
            assertEquals("committed", Broker.body(delivery));
            delivery.accept();
            session.commitTransaction();
            Broker.nothing(receiver);
        }
    }

    @Test
    void an_unknown_queue() throws Exception {
        try (Connection connection = Broker.connect()) {
            ExecutionException error = assertThrows(ExecutionException.class, () -> Broker.receiver(connection, "no-such-queue"));
            assertTrue(error.getCause() instanceof ClientException, () -> "the error is " + error.getCause());
            assertTrue(error.getCause().getMessage().contains("could not be found"), () -> "the error is " + error.getCause());
            // The connection lives on.
            Broker.send(Broker.sender(connection, "s08"), "one");
        }
    }
}

package jms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import jakarta.jms.Connection;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.TextMessage;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;

/** What every scenario needs: connections of its own, receives with a deadline. */
abstract class Scenarios {
    static final Duration DEADLINE = Duration.ofSeconds(20);

    private final Deque<AutoCloseable> open = new ArrayDeque<>();

    static String environment(String name) {
        return Objects.requireNonNull(System.getenv(name), () -> "the runner says no " + name);
    }

    static String address() {
        return "amqp://localhost:" + environment("JITNEY_AMQP_PORT");
    }

    /** A factory as the service documents it: name and key of a rule as SASL PLAIN's user and password. */
    static JmsConnectionFactory factory(String... options) {
        return factoryTo(address() + (options.length == 0 ? "" : "?" + String.join("&", options)));
    }

    static JmsConnectionFactory factoryTo(String uri) {
        return new JmsConnectionFactory("RootManageSharedAccessKey", "SAS_KEY_VALUE", uri);
    }

    /** Closes what a scenario has opened, when it ends. */
    final <T extends AutoCloseable> T keep(T opened) {
        open.push(opened);
        return opened;
    }

    final JMSContext context(int mode, String... options) {
        return keep(factory(options).createContext(mode));
    }

    final JMSContext context(String... options) {
        return context(JMSContext.AUTO_ACKNOWLEDGE, options);
    }

    final Connection connection(String... options) throws JMSException {
        Connection connection = keep(factory(options).createConnection());
        connection.start();
        return connection;
    }

    @AfterEach
    void closeAll() throws Exception {
        while (!open.isEmpty()) {
            open.pop().close();
        }
    }

    // Sending

    /** Sends messages with the texts 1, 2, 3…, by a connection of its own. */
    static void sendNumbered(String queue, int count) {
        try (JMSContext context = factory().createContext()) {
            IntStream.rangeClosed(1, count)
                .forEach(n -> context.createProducer().send(context.createQueue(queue), String.valueOf(n)));
        }
    }

    // Receiving

    static Message receive(JMSConsumer consumer) {
        return arrived(consumer.receive(DEADLINE.toMillis()));
    }

    static Message receive(MessageConsumer consumer) throws JMSException {
        return arrived(consumer.receive(DEADLINE.toMillis()));
    }

    private static Message arrived(Message message) {
        Assertions.assertNotNull(message, () -> "no message within " + DEADLINE);
        return message;
    }

    static List<String> texts(JMSConsumer consumer, int count) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (int n = 0; n < count; n += 1) {
            texts.add(text(receive(consumer)));
        }
        return texts;
    }

    static String text(Message message) throws JMSException {
        return ((TextMessage) message).getText();
    }

    static List<String> texts(int first, int last) {
        return IntStream.rangeClosed(first, last).mapToObj(String::valueOf).toList();
    }

    /** Nothing arrives for a while. This is also how a scenario lets time pass. */
    static void receiveNothing(JMSConsumer consumer, long milliseconds) throws JMSException {
        Message message = consumer.receive(milliseconds);
        assertNull(message, () -> "unexpected: " + message);
    }

    static void receiveNothing(JMSConsumer consumer) throws JMSException {
        receiveNothing(consumer, 1000);
    }

    /** Nothing is left of a queue that can be received: another connection finds nothing. */
    static void isEmpty(String queue) throws JMSException {
        try (JMSContext context = factory().createContext()) {
            receiveNothing(context.createConsumer(context.createQueue(queue)));
        }
    }

    static int deliveries(Message message) throws JMSException {
        return message.getIntProperty("JMSXDeliveryCount");
    }

    static void assertTexts(List<String> expected, List<Message> messages) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (Message message : messages) {
            texts.add(text(message));
        }
        assertEquals(expected, texts);
    }
}

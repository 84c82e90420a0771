import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * The steps (../../../README.md) that one version of Qpid JMS has calls for: `Main PREFIX`. Versions before 2 have `javax.jms`, and
 * are compiled from a copy in which it is named.
 */
final class Main {
    private static final int INDIVIDUAL_ACKNOWLEDGE = 101;
    private static final int REJECTED = 2;
    private static final int MODIFIED_FAILED = 4;
    private static final int MODIFIED_FAILED_UNDELIVERABLE = 5;

    private final Connection connection;
    private final String prefix;

    private Main(String prefix) throws Exception {
        Matcher found = Pattern.compile("sb://([^/]+)/;SharedAccessKeyName=([^;]+);SharedAccessKey=(.+)")
            .matcher(System.getenv("CONNECTION_STRING"));
        Steps.check(found.find(), "no connection string");
        connection = new JmsConnectionFactory(found.group(2), found.group(3), "amqps://" + found.group(1) + ":5671").createConnection();
        connection.start();
        this.prefix = prefix;
    }

    private interface Use {
        void of(Session session, Destination queue) throws Exception;
    }

    private void with(String name, int mode, Use use) throws Exception {
        Session session = connection.createSession(mode == Session.SESSION_TRANSACTED, mode);
        use.of(session, session.createQueue(prefix + "-" + name));
        session.close();
    }

    private void with(String name, Use use) throws Exception {
        with(name, INDIVIDUAL_ACKNOWLEDGE, use);
    }

    private static void send(Session session, Destination queue, String... bodies) throws Exception {
        MessageProducer producer = session.createProducer(queue);
        for (String body : bodies) {
            producer.send(session.createTextMessage(body));
        }
        producer.close();
    }

    private static Message next(MessageConsumer consumer) throws Exception {
        Message message = consumer.receive(Steps.SOON.toMillis());
        Steps.check(message != null, "no message");
        return message;
    }

    private static String text(Message message) throws Exception {
        return ((TextMessage) message).getText();
    }

    private static void settle(Message message, int outcome) throws Exception {
        message.setIntProperty("JMS_AMQP_ACK_TYPE", outcome);
        message.acknowledge();
    }

    private static void empty(Session session, Destination queue) throws Exception {
        MessageConsumer consumer = session.createConsumer(queue);
        Steps.check(consumer.receive(500) == null, "there is a message");
        consumer.close();
    }

    /** Sends a message to a queue, and settles it with an outcome. */
    private static void settled(Session session, Destination queue, int outcome) throws Exception {
        send(session, queue, "one");
        MessageConsumer consumer = session.createConsumer(queue);
        settle(next(consumer), outcome);
        consumer.close();
    }

    private Map<String, Steps.Step> steps() {
        Map<String, Steps.Step> steps = new LinkedHashMap<>();
        steps.put("send", () -> with("send", (session, queue) -> {
            TextMessage sent = session.createTextMessage("one");
            sent.setIntProperty("number", 7);
            session.createProducer(queue).send(sent);
            Message message = next(session.createConsumer(queue));
            Steps.check(text(message).equals("one"), "the body is " + text(message));
            Steps.check(message.getIntProperty("number") == 7, "the property is " + message.getObjectProperty("number"));
            message.acknowledge();
        }));
        // As a transaction: JMS has no other way.
        steps.put("batch", () -> with("batch", Session.SESSION_TRANSACTED, (session, queue) -> {
            for (int number = 0; number < 20; number++) {
                send(session, queue, "" + number);
            }
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            for (int number = 0; number < 20; number++) {
                String body = text(next(consumer));
                Steps.check(body.equals("" + number), "message " + number + " is " + body);
            }
            session.commit();
            consumer.close();
            empty(session, queue);
        }));
        steps.put("complete", () -> with("complete", (session, queue) -> {
            send(session, queue, "one");
            MessageConsumer consumer = session.createConsumer(queue);
            next(consumer).acknowledge();
            consumer.close();
            empty(session, queue);
        }));
        steps.put("abandon", () -> with("abandon", (session, queue) -> {
            send(session, queue, "one");
            MessageConsumer consumer = session.createConsumer(queue);
            settle(next(consumer), MODIFIED_FAILED);
            Message again = next(consumer);
            int deliveries = again.getIntProperty("JMSXDeliveryCount");
            Steps.check(deliveries == 2, "the delivery count is " + deliveries);
            again.acknowledge();
        }));
        // JMS has no call that receives by number.
        steps.put("defer", () -> with("defer", (session, queue) -> {
            settled(session, queue, MODIFIED_FAILED_UNDELIVERABLE);
            empty(session, queue);
        }));
        steps.put("dead-letter", () -> with("dead-letter", (session, queue) -> {
            settled(session, queue, REJECTED);
            Message letter = next(session.createConsumer(session.createQueue(prefix + "-dead-letter/$DeadLetterQueue")));
            Steps.check(text(letter).equals("one"), "the body is " + text(letter));
            letter.acknowledge();
        }));
        steps.put("schedule", () -> with("schedule", (session, queue) -> {
            MessageProducer producer = session.createProducer(queue);
            producer.setDeliveryDelay(1000);
            producer.send(session.createTextMessage("one"));
            MessageConsumer consumer = session.createConsumer(queue);
            Steps.check(consumer.receive(300) == null, "the message comes at once");
            next(consumer).acknowledge();
        }));
        steps.put("unknown", () -> with("unknown", (session, queue) -> {
            try {
                send(session, queue, "one");
            } catch (InvalidDestinationException error) {
                return;
            }
            throw new AssertionError("no error");
        }));
        return steps;
    }

    public static void main(String[] arguments) throws Exception {
        Steps.run(new Main(arguments[0]).steps());
    }
}

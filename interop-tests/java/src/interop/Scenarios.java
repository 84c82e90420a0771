package interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.core.credential.TokenCredential;
import com.azure.core.exception.ClientAuthenticationException;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.exception.ResourceExistsException;
import com.azure.core.exception.ResourceNotFoundException;
import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.function.Executable;

/** What every scenario needs: a connection of its own, receives with a deadline, errors by their reason. */
abstract class Scenarios {
    static final Duration DEADLINE = Connection.DEADLINE;

    /** Blocking calls of the SDK that a scenario leaves waiting. */
    private static final ExecutorService ASIDE = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "aside");
        thread.setDaemon(true);
        return thread;
    });

    private final Deque<Connection> connections = new ArrayDeque<>();
    protected final Connection client = connect();

    /** Another connection, that ends with the scenario. */
    protected final Connection connect() {
        return connect(DEADLINE);
    }

    /** Another connection, whose waits for a session end after {@code tryTimeout}. */
    protected final Connection connect(Duration tryTimeout) {
        Connection connection = new Connection(tryTimeout);
        connections.push(connection);
        return connection;
    }

    /** A connection to where a connection string says. */
    protected final Connection connect(String connectionString) {
        return connect(connectionString, DEADLINE);
    }

    protected final Connection connect(String connectionString, Duration tryTimeout) {
        Connection connection = new Connection(connectionString, tryTimeout);
        connections.push(connection);
        return connection;
    }

    /** A connection to the secured broker with an identity. */
    protected final Connection connect(TokenCredential who) {
        Connection connection =
            new Connection(new ServiceBusClientBuilder().credential(Endpoint.NAMESPACE, who), DEADLINE);
        connections.push(connection);
        return connection;
    }

    @AfterEach
    void closeConnections() throws Exception {
        while (!connections.isEmpty()) {
            connections.pop().close();
        }
    }

    // Sending

    static ServiceBusMessage message(String body) {
        return new ServiceBusMessage(body);
    }

    static ServiceBusMessage message(int body) {
        return new ServiceBusMessage(String.valueOf(body));
    }

    static ServiceBusMessage inSession(String id, String body) {
        return new ServiceBusMessage(body).setSessionId(id);
    }

    /** A message with one application property. */
    static ServiceBusMessage with(String name, Object value) {
        ServiceBusMessage message = new ServiceBusMessage(String.valueOf(value));
        message.getApplicationProperties().put(name, value);
        return message;
    }

    /** Messages whose bodies are 1, 2, 3… */
    static List<ServiceBusMessage> numbered(int count) {
        return IntStream.rangeClosed(1, count).mapToObj(Scenarios::message).toList();
    }

    /** Sends messages with bodies 1, 2, 3… in one batch. */
    void sendNumbered(String entity, int count) {
        ServiceBusSenderClient sender = client.sender(entity);
        sender.sendMessages(numbered(count));
        sender.close();
    }

    void send(String entity, ServiceBusMessage... messages) {
        ServiceBusSenderClient sender = client.sender(entity);
        for (ServiceBusMessage message : messages) {
            sender.sendMessage(message);
        }
        sender.close();
    }

    // Receiving

    /** Receives exactly {@code count} messages, in as many calls as it takes. */
    static List<ServiceBusReceivedMessage> receive(ServiceBusReceiverClient receiver, int count) {
        return receive(receiver, count, DEADLINE);
    }

    static List<ServiceBusReceivedMessage> receive(ServiceBusReceiverClient receiver, int count, Duration deadline) {
        long end = System.nanoTime() + deadline.toNanos();
        List<ServiceBusReceivedMessage> received = new ArrayList<>();
        while (received.size() < count) {
            long remaining = end - System.nanoTime();
            assertTrue(remaining > 0, () -> received.size() + " of " + count + " messages within " + deadline);
            receiver.receiveMessages(count - received.size(), Duration.ofNanos(remaining)).forEach(received::add);
        }
        assertEquals(count, received.size());
        return received;
    }

    static ServiceBusReceivedMessage receiveOne(ServiceBusReceiverClient receiver) {
        return receiveOne(receiver, DEADLINE);
    }

    static ServiceBusReceivedMessage receiveOne(ServiceBusReceiverClient receiver, Duration deadline) {
        return receive(receiver, 1, deadline).get(0);
    }

    /** Checks that no message arrives for a second. */
    static void receiveNothing(ServiceBusReceiverClient receiver) {
        receiveNothing(receiver, Duration.ofSeconds(1));
    }

    /** Checks that no message arrives for a while. This is also how a scenario lets time pass. */
    static void receiveNothing(ServiceBusReceiverClient receiver, Duration wait) {
        assertEquals(List.of(), bodies(receiver.receiveMessages(1, wait)));
    }

    static void completeAll(ServiceBusReceiverClient receiver, List<ServiceBusReceivedMessage> messages) {
        messages.forEach(receiver::complete);
    }

    /** Everything that a peek from the first message sees, page by page. */
    static List<ServiceBusReceivedMessage> peekAll(ServiceBusReceiverClient receiver) {
        List<ServiceBusReceivedMessage> seen = new ArrayList<>();
        while (true) {
            long next = seen.isEmpty() ? 1 : seen.get(seen.size() - 1).getSequenceNumber() + 1;
            List<ServiceBusReceivedMessage> page = receiver.peekMessages(100, next).stream().toList();
            if (page.isEmpty()) {
                return seen;
            }
            seen.addAll(page);
        }
    }

    /** Sends a small and a large message and completes them, and uses the management node; leaves nothing behind. */
    static void roundTrip(Connection connection, String queue) {
        ServiceBusSenderClient sender = connection.sender(queue);
        ServiceBusReceiverClient receiver = connection.receiver(queue);
        for (int size : new int[] {1, 200 * 1024}) {
            sender.sendMessage(ofSize(size));
            ServiceBusReceivedMessage message = receiveOne(receiver);
            assertArrayEquals(pattern(size), message.getBody().toBytes());
            receiver.complete(message);
        }
        sender.cancelScheduledMessage(sender.scheduleMessage(message("later"), in(Duration.ofHours(1))));
        assertEquals(List.of(), peekAll(receiver));
    }

    // Reading messages

    static List<String> bodies(Iterable<ServiceBusReceivedMessage> messages) {
        List<String> bodies = new ArrayList<>();
        messages.forEach(message -> bodies.add(message.getBody().toString()));
        return bodies;
    }

    static List<Long> numbers(Iterable<ServiceBusReceivedMessage> messages) {
        List<Long> numbers = new ArrayList<>();
        messages.forEach(message -> numbers.add(message.getSequenceNumber()));
        return numbers;
    }

    /** Delivery counts as on the wire. */
    static List<Long> counts(Iterable<ServiceBusReceivedMessage> messages) {
        List<Long> counts = new ArrayList<>();
        messages.forEach(message -> counts.add(message.getDeliveryCount()));
        return counts;
    }

    static List<Long> range(long first, long last) {
        return LongStream.rangeClosed(first, last).boxed().toList();
    }

    static List<String> texts(int first, int last) {
        return IntStream.rangeClosed(first, last).mapToObj(String::valueOf).toList();
    }

    static byte[] pattern(int size) {
        byte[] bytes = new byte[size];
        for (int index = 0; index < size; index += 1) {
            bytes[index] = (byte) (index * 31 % 251);
        }
        return bytes;
    }

    static ServiceBusMessage ofSize(int size) {
        return new ServiceBusMessage(BinaryData.fromBytes(pattern(size)));
    }

    // Errors

    /** What a receive tells is AMQP's condition; every other call says a reason of its own. */
    private static final Map<ServiceBusFailureReason, AmqpErrorCondition> CONDITIONS = Map.of(
        ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, AmqpErrorCondition.NOT_FOUND,
        ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED, AmqpErrorCondition.ENTITY_DISABLED_ERROR,
        ServiceBusFailureReason.SESSION_CANNOT_BE_LOCKED, AmqpErrorCondition.SESSION_CANNOT_BE_LOCKED,
        ServiceBusFailureReason.SESSION_LOCK_LOST, AmqpErrorCondition.SESSION_LOCK_LOST,
        ServiceBusFailureReason.UNAUTHORIZED, AmqpErrorCondition.UNAUTHORIZED_ACCESS);

    /** Checks that the SDK names this reason. */
    static Throwable fails(ServiceBusFailureReason reason, Executable action) {
        Throwable failure = assertThrows(Throwable.class, action);
        for (Throwable each = failure; each != null; each = each.getCause()) {
            if (each instanceof ServiceBusException found && found.getReason() == reason) {
                return failure;
            }
        }
        if (conditions(failure).contains(CONDITIONS.get(reason))) {
            return failure;
        }
        throw new AssertionError("wanted " + reason + ", got " + described(failure), failure);
    }

    static void fails(ServiceBusFailureReason reason, String text, Executable action) {
        saysWhy(text, fails(reason, action));
    }

    /** Checks that the broker refuses, at once, with this text somewhere in what is told. */
    static void refuses(String text, Executable action) {
        long begin = System.nanoTime();
        Throwable failure = assertThrows(Throwable.class, action);
        assertTrue(secondsSince(begin) < 5, () -> "refused too late: " + described(failure));
        saysWhy(text, failure);
        assertTrue(conditions(failure).stream().noneMatch(each -> each == AmqpErrorCondition.TIMEOUT_ERROR),
            () -> described(failure));
    }

    /** Checks that administration answers with a status, as the SDK's error of its own where it has one. */
    static void denies(int status, String text, Executable action) {
        Class<? extends HttpResponseException> type = switch (status) {
            case 401 -> ClientAuthenticationException.class;
            case 404 -> ResourceNotFoundException.class;
            case 409 -> ResourceExistsException.class;
            default -> HttpResponseException.class;
        };
        HttpResponseException failure = assertThrows(type, action);
        assertEquals(status, failure.getResponse().getStatusCode(), failure::toString);
        saysWhy(text, failure);
    }

    static void saysWhy(String text, Throwable failure) {
        assertTrue(described(failure).contains(text), () -> "wanted \"" + text + "\", got " + described(failure));
    }

    static List<AmqpErrorCondition> conditions(Throwable failure) {
        List<AmqpErrorCondition> conditions = new ArrayList<>();
        for (Throwable each = failure; each != null; each = each.getCause()) {
            if (each instanceof AmqpException found && found.getErrorCondition() != null) {
                conditions.add(found.getErrorCondition());
            }
        }
        return conditions;
    }

    private static String described(Throwable failure) {
        StringBuilder text = new StringBuilder();
        for (Throwable each = failure; each != null; each = each.getCause()) {
            text.append(text.isEmpty() ? "" : " <- ").append(each);
            if (each instanceof ServiceBusException found) {
                text.append(" [").append(found.getReason()).append(']');
            }
        }
        return text.toString();
    }

    // Time

    static double secondsSince(long nanoTime) {
        return (System.nanoTime() - nanoTime) / 1e9;
    }

    /** A time in whole milliseconds, as AMQP has them: later ones are cut off on the way. */
    static OffsetDateTime in(Duration duration) {
        return OffsetDateTime.now().plus(duration).truncatedTo(ChronoUnit.MILLIS);
    }

    static void assertNear(OffsetDateTime time, OffsetDateTime wanted, Duration tolerance) {
        Duration difference = Duration.between(wanted, time).abs();
        assertTrue(difference.compareTo(tolerance) <= 0, () -> time + " is " + difference + " off " + wanted);
    }

    /** Begins a blocking call on a thread of its own. */
    static <T> CompletableFuture<T> aside(Supplier<T> call) {
        return CompletableFuture.supplyAsync(call, ASIDE);
    }

    /** The result of a call that was begun, within a time. */
    static <T> T within(Duration deadline, CompletableFuture<T> call) throws Exception {
        return call.get(deadline.toMillis(), TimeUnit.MILLISECONDS);
    }
}

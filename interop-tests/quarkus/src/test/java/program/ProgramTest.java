package program;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.SubQueue;
import io.quarkus.test.junit.QuarkusTest;
import io.vertx.core.json.JsonObject;
import jakarta.inject.Inject;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;
import program.Channels.Bill;

/** The program at work, and what must come of what is sent. */
@QuarkusTest
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
@Timeout(120)
class ProgramTest {
    private static final Duration DEADLINE = Duration.ofSeconds(30);
    /** A queue that the program does not read. */
    private static final String QUEUE = "s01";
    private static final String ORDERS = "s400";
    private static final String BILLS = "s403";
    private static final String TOPIC = "s405";

    @Inject
    ServiceBusClientBuilder builder;

    @Inject
    Processors processors;

    @Inject
    Channels channels;

    @Test
    void aMessageIsSentReceivedAndCompleted() {
        ServiceBusMessage message = new ServiceBusMessage("an order").setMessageId("one").setSubject("orders")
            .setContentType("text/plain").setCorrelationId("a").setTimeToLive(Duration.ofHours(1));
        message.getApplicationProperties().put("amount", 7);
        try (ServiceBusSenderClient sender = builder.sender().queueName(QUEUE).buildClient()) {
            sender.sendMessage(message);
        }
        try (ServiceBusReceiverClient receiver = builder.receiver().queueName(QUEUE).buildClient()) {
            ServiceBusReceivedMessage received = next(receiver);
            assertEquals("an order", received.getBody().toString());
            assertEquals("one", received.getMessageId());
            assertEquals("orders", received.getSubject());
            assertEquals("text/plain", received.getContentType());
            assertEquals("a", received.getCorrelationId());
            assertEquals(Duration.ofHours(1), received.getTimeToLive());
            assertEquals(7, received.getApplicationProperties().get("amount"));
            receiver.complete(received);
            assertNull(receiver.peekMessage());
        }
    }

    @Test
    void aBatchArrivesWholeAndInOrder() {
        List<String> bodies = IntStream.range(0, 100).mapToObj(each -> "item " + each).toList();
        try (ServiceBusSenderClient sender = builder.sender().queueName("s03").buildClient()) {
            ServiceBusMessageBatch batch = sender.createMessageBatch();
            bodies.forEach(body -> assertTrue(batch.tryAddMessage(new ServiceBusMessage(body))));
            sender.sendMessages(batch);
        }
        List<String> received = new ArrayList<>();
        try (ServiceBusReceiverClient receiver = builder.receiver().queueName("s03").buildClient()) {
            while (received.size() < bodies.size()) {
                ServiceBusReceivedMessage message = next(receiver);
                received.add(message.getBody().toString());
                receiver.complete(message);
            }
        }
        assertEquals(bodies, received);
    }

    @Test
    void aProcessorWritesToAnotherQueue() {
        send(Processors.SPOKEN, new ServiceBusMessage("hello").setMessageId("greeting"));
        try (ServiceBusReceiverClient receiver = builder.receiver().queueName(Processors.SHOUTED).buildClient()) {
            ServiceBusReceivedMessage received = next(receiver);
            assertEquals("HELLO", received.getBody().toString());
            assertEquals("greeting", received.getMessageId());
            receiver.complete(received);
        }
    }

    @Test
    void whatAProcessorFailsWithComesThreeTimesAndIsThenADeadLetter() {
        send(Processors.SPOKEN, new ServiceBusMessage("bad"));
        ServiceBusReceivedMessage dead = deadLetter(Processors.SPOKEN);
        assertEquals("bad", dead.getBody().toString());
        assertEquals("MaxDeliveryCountExceeded", dead.getDeadLetterReason());
        assertEquals(3, dead.getDeliveryCount());
    }

    @Test
    void sessionsAreProcessedEachInItsOrder() throws InterruptedException {
        List<String> sessions = List.of("blue", "green", "red");
        List<String> bodies = IntStream.range(0, 10).mapToObj(Integer::toString).toList();
        for (String body : bodies) {
            for (String session : sessions) {
                send(Processors.SESSIONS, new ServiceBusMessage(body).setSessionId(session));
            }
        }
        Map<String, List<String>> seen = new TreeMap<>();
        for (int left = sessions.size() * bodies.size(); left > 0; left--) {
            ServiceBusReceivedMessage message = processors.ofSessions().poll(DEADLINE.toSeconds(), TimeUnit.SECONDS);
            assertNotNull(message, () -> "no message after " + seen);
            seen.computeIfAbsent(message.getSessionId(), name -> new ArrayList<>()).add(message.getBody().toString());
        }
        sessions.forEach(session -> assertEquals(bodies, seen.get(session), session));
    }

    @Test
    void aChannelReadsJsonAndAnswersInAnotherQueue() {
        channels.orders().send(new Channels.Order("apples", 4));
        assertEquals(new Bill("apples", 12), bills(1).get(0));
    }

    @Test
    void aChannelReadsWhatTheSdkSends() {
        sendJson(new Channels.Order("pears", 5));
        assertEquals(new Bill("pears", 15), bills(1).get(0));
    }

    @Test
    void whatAChannelFailsWithIsADeadLetter() {
        channels.orders().send(new Channels.Order("plums", -1));
        JsonObject dead = new JsonObject(deadLetter(ORDERS).getBody().toString());
        assertEquals("plums", dead.getString("name"));
    }

    @Test
    void aChannelReadsASubscription() throws InterruptedException {
        try (ServiceBusSenderClient sender = builder.sender().topicName(TOPIC).buildClient()) {
            ServiceBusMessage message = new ServiceBusMessage("something new").setContentType("text/plain");
            sender.sendMessage(message);
        }
        assertEquals("something new", channels.news().poll(DEADLINE.toSeconds(), TimeUnit.SECONDS));
    }

    /** The last: the broker is killed under the processors and channels, which must continue by themselves. */
    @Test
    @Order(Integer.MAX_VALUE)
    void allContinueAfterTheBrokerIsKilled() throws Exception {
        send(QUEUE, new ServiceBusMessage("before"));
        control("kill");
        control("start");
        try (ServiceBusReceiverClient receiver = builder.receiver().queueName(QUEUE).buildClient()) {
            ServiceBusReceivedMessage received = next(receiver);
            assertEquals("before", received.getBody().toString());
            receiver.complete(received);
        }
        send(Processors.SPOKEN, new ServiceBusMessage("again"));
        try (ServiceBusReceiverClient receiver = builder.receiver().queueName(Processors.SHOUTED).buildClient()) {
            ServiceBusReceivedMessage received = next(receiver);
            assertEquals("AGAIN", received.getBody().toString());
            receiver.complete(received);
        }
        channels.orders().send(new Channels.Order("grapes", 1));
        sendJson(new Channels.Order("figs", 2));
        Set<String> names = new TreeSet<>();
        bills(2).forEach(bill -> names.add(bill.name()));
        assertEquals(Set.of("figs", "grapes"), names);
    }

    private void send(String queue, ServiceBusMessage message) {
        try (ServiceBusSenderClient sender = builder.sender().queueName(queue).buildClient()) {
            sender.sendMessage(message);
        }
    }

    /** Sends an order by the SDK. */
    private void sendJson(Channels.Order order) {
        send(ORDERS, new ServiceBusMessage(JsonObject.mapFrom(order).encode()).setContentType("application/json"));
    }

    private static ServiceBusReceivedMessage next(ServiceBusReceiverClient receiver) {
        ServiceBusReceivedMessage found = receiver.receiveMessages(1, DEADLINE).stream().findFirst().orElse(null);
        assertNotNull(found, "no message");
        return found;
    }

    /** The dead letter of a queue, which is completed. */
    private ServiceBusReceivedMessage deadLetter(String queue) {
        try (ServiceBusReceiverClient receiver =
                builder.receiver().queueName(queue).subQueue(SubQueue.DEAD_LETTER_QUEUE).buildClient()) {
            ServiceBusReceivedMessage dead = next(receiver);
            receiver.complete(dead);
            return dead;
        }
    }

    /** So many bills, as the channel has written them. */
    private List<Bill> bills(int count) {
        List<Bill> found = new ArrayList<>();
        try (ServiceBusReceiverClient receiver = builder.receiver().queueName(BILLS).buildClient()) {
            while (found.size() < count) {
                ServiceBusReceivedMessage message = next(receiver);
                assertEquals("application/json", message.getContentType());
                found.add(new JsonObject(message.getBody().toString()).mapTo(Bill.class));
                receiver.complete(message);
            }
        }
        return found;
    }

    private static void control(String verb) throws Exception {
        String command = Objects.requireNonNull(System.getenv("JITNEY_BROKER_CONTROL")) + " " + verb;
        assertEquals(0, new ProcessBuilder(command.split(" ")).inheritIO().start().waitFor());
    }
}

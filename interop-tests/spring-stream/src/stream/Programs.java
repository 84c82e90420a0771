package stream;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.SubQueue;
import com.azure.spring.messaging.servicebus.support.ServiceBusMessageHeaders;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.stream.function.StreamBridge;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.support.MessageBuilder;
import stream.Application.Order;

/** One program for all tests, with its functions at work. */
class Programs {
    private static final Duration DEADLINE = Duration.ofSeconds(30);
    private static final String CONNECTION_STRING =
        Objects.requireNonNull(System.getenv("JITNEY_CONNECTION_STRING"), "no broker is named");
    /** The queue of ../config.json that each function reads. */
    private static final Map<String, String> QUEUES = Map.of(
        "orders", "s400", "shout", "s403", "shouted", "s404", "failing", "s401", "settling", "s01", "sessions", "s402");

    private static ConfigurableApplicationContext context;

    private static synchronized ConfigurableApplicationContext program() {
        if (context == null) {
            context = new SpringApplicationBuilder(Application.class).web(WebApplicationType.NONE).bannerMode(Banner.Mode.OFF)
                .properties(properties()).run();
        }
        return context;
    }

    private static Map<String, Object> properties() {
        Map<String, Object> properties = new HashMap<>();
        properties.put("spring.cloud.azure.servicebus.connection-string", CONNECTION_STRING);
        properties.put("spring.cloud.function.definition", String.join(";", QUEUES.keySet()) + ";news");
        QUEUES.forEach((function, queue) -> {
            properties.put("spring.cloud.stream.bindings." + function + "-in-0.destination", queue);
            properties.put("spring.cloud.stream.servicebus.bindings." + function + "-in-0.consumer.entity-type", "queue");
            properties.put("spring.cloud.stream.bindings.to-" + function + ".destination", queue);
            properties.put("spring.cloud.stream.servicebus.bindings.to-" + function + ".producer.entity-type", "queue");
            // Otherwise sends overtake each other.
            properties.put("spring.cloud.stream.servicebus.bindings.to-" + function + ".producer.sync", "true");
        });
        properties.put("spring.cloud.stream.bindings.shout-out-0.destination", "s404");
        properties.put("spring.cloud.stream.servicebus.bindings.shout-out-0.producer.entity-type", "queue");
        properties.put("spring.cloud.stream.bindings.news-in-0.destination", "s405");
        properties.put("spring.cloud.stream.bindings.news-in-0.group", "all");
        properties.put("spring.cloud.stream.bindings.to-news.destination", "s405");
        properties.put("spring.cloud.stream.servicebus.bindings.to-news.producer.entity-type", "topic");
        // One try of Spring's own: the broker's count is looked at.
        properties.put("spring.cloud.stream.bindings.failing-in-0.consumer.max-attempts", "1");
        properties.put("spring.cloud.stream.servicebus.bindings.settling-in-0.consumer.auto-complete", "false");
        properties.put("spring.cloud.stream.servicebus.bindings.sessions-in-0.consumer.session-enabled", "true");
        properties.put("spring.cloud.stream.servicebus.bindings.sessions-in-0.consumer.max-concurrent-sessions", "3");
        properties.put("spring.cloud.stream.servicebus.bindings.sessions-in-0.consumer.session-idle-timeout", "1s");
        properties.put("logging.level.root", "off");
        return properties;
    }

    /** Stops the program; every function lets go. */
    static synchronized void end() {
        if (context != null) {
            context.close();
        }
    }

    private static void send(String function, Message<?> message) {
        assertTrue(program().getBean(StreamBridge.class).send("to-" + function, message), "it was not sent");
    }

    private static void send(String function, Object payload) {
        send(function, MessageBuilder.withPayload(payload).build());
    }

    private static Message<?> next(String function) throws InterruptedException {
        Message<?> given = program().getBean(Application.class).seen(function).poll(DEADLINE.toSeconds(), TimeUnit.SECONDS);
        assertNotNull(given, () -> "nothing came to the function " + function);
        return given;
    }

    /** The plain client, for what a function cannot see. */
    private static <T> T looking(String queue, SubQueue part, Function<ServiceBusReceiverClient, T> work) {
        try (ServiceBusReceiverClient receiver = new ServiceBusClientBuilder().connectionString(CONNECTION_STRING)
                .receiver().queueName(queue).subQueue(part).buildClient()) {
            return work.apply(receiver);
        }
    }

    /** Nothing is left, soon. */
    private static void becomesEmpty(String queue) {
        looking(queue, SubQueue.NONE, receiver -> {
            long end = System.nanoTime() + DEADLINE.toNanos();
            while (receiver.peekMessages(1, 1).stream().findAny().isPresent()) {
                assertTrue(System.nanoTime() < end, "messages that are not completed");
            }
            return null;
        });
    }

    @Test
    void a_consumer_gets_a_record_with_headers() throws Exception {
        send("orders", MessageBuilder.withPayload(new Order("tea", 3)).setHeader("color", "red")
            .setHeader(ServiceBusMessageHeaders.CORRELATION_ID, "c").build());
        Message<?> given = next("orders");
        assertEquals(new Order("tea", 3), given.getPayload());
        MessageHeaders headers = given.getHeaders();
        assertEquals("red", headers.get("color"));
        assertEquals("c", headers.get(ServiceBusMessageHeaders.CORRELATION_ID));
        becomesEmpty("s400");
    }

    @Test
    void a_function_stands_between_two_queues() throws Exception {
        for (int number = 0; number < 20; number++) {
            send("shout", "word " + number);
        }
        List<Object> words = new ArrayList<>();
        for (int number = 0; number < 20; number++) {
            words.add(next("shouted").getPayload());
        }
        for (int number = 0; number < 20; number++) {
            assertTrue(words.contains("WORD " + number), "it got " + words);
        }
        becomesEmpty("s403");
        becomesEmpty("s404");
    }

    /** What a consumer fails with is dead-lettered by the binder. */
    @Test
    void a_failed_message_becomes_a_dead_letter() throws Exception {
        for (String text : List.of("one", "bad", "two")) {
            send("failing", text);
        }
        for (int number = 0; number < 3; number++) {
            next("failing");
        }
        ServiceBusReceivedMessage letter = looking("s401", SubQueue.DEAD_LETTER_QUEUE, receiver -> {
            ServiceBusReceivedMessage found = receiver.receiveMessages(1, DEADLINE).stream().findFirst().orElseThrow();
            receiver.complete(found);
            return found;
        });
        assertEquals("bad", letter.getBody().toString());
        becomesEmpty("s401");
    }

    @Test
    void a_consumer_settles_by_itself() throws Exception {
        send("settling", "one");
        assertEquals("one", next("settling").getPayload());
        becomesEmpty("s01");
    }

    @Test
    void each_session_comes_in_its_order() throws Exception {
        for (int number = 0; number < 4; number++) {
            for (String session : List.of("a", "b", "c", "d", "e")) {
                send("sessions", MessageBuilder.withPayload(session + number).setHeader(ServiceBusMessageHeaders.SESSION_ID, session).build());
            }
        }
        Map<Object, List<Object>> found = new TreeMap<>();
        for (int number = 0; number < 20; number++) {
            Message<?> given = next("sessions");
            found.computeIfAbsent(given.getHeaders().get(ServiceBusMessageHeaders.SESSION_ID), id -> new ArrayList<>())
                .add(given.getPayload());
        }
        assertEquals(5, found.size());
        found.forEach((id, bodies) -> assertEquals(List.of(id + "0", id + "1", id + "2", id + "3"), bodies));
        becomesEmpty("s402");
    }

    @Test
    void a_subscription_gets_what_is_sent_to_its_topic() throws Exception {
        byte[] body = new byte[100_000];
        body[99_999] = 7;
        send("news", body);
        assertArrayEquals(body, (byte[]) next("news").getPayload());
    }
}

package spring;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.SubQueue;
import com.azure.spring.cloud.service.servicebus.properties.ServiceBusEntityType;
import com.azure.spring.messaging.servicebus.core.ServiceBusProducerFactory;
import com.azure.spring.messaging.servicebus.core.ServiceBusTemplate;
import com.azure.spring.messaging.servicebus.support.ServiceBusMessageHeaders;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
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
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.support.MessageBuilder;
import spring.Application.Given;
import spring.Application.Order;

/** One program for all scenarios, and its listeners at work. */
class Programs {
    private static final Duration DEADLINE = Duration.ofSeconds(30);
    private static final String CONNECTION_STRING =
        Objects.requireNonNull(System.getenv("JITNEY_CONNECTION_STRING"), "no broker is named");

    private static ConfigurableApplicationContext context;

    private static synchronized ConfigurableApplicationContext program() {
        if (context == null) {
            context = new SpringApplicationBuilder(Application.class).web(WebApplicationType.NONE).bannerMode(
                Banner.Mode.OFF).properties(Map.of(
                "spring.cloud.azure.servicebus.connection-string", CONNECTION_STRING,
                "spring.cloud.azure.servicebus.entity-type", "queue",
                "logging.level.root", "off")).run();
        }
        return context;
    }

    /** Stops the program; every listener lets go. */
    static synchronized void end() {
        if (context != null) {
            context.close();
        }
    }

    private static Application application() {
        return program().getBean(Application.class);
    }

    private static ServiceBusTemplate template() {
        return program().getBean(ServiceBusTemplate.class);
    }

    private static void send(String queue, Message<?> message) {
        template().sendAsync(queue, message).block(DEADLINE);
    }

    private static void send(String queue, Object payload) {
        send(queue, MessageBuilder.withPayload(payload).build());
    }

    private static Given next(String queue) throws InterruptedException {
        Given given = application().seen(queue).poll(DEADLINE.toSeconds(), TimeUnit.SECONDS);
        assertNotNull(given, () -> "nothing came to the listener of " + queue);
        return given;
    }

    /** The plain client, for what a listener cannot see. */
    private static <T> T looking(String queue, boolean isDead, Function<ServiceBusReceiverClient, T> work) {
        try (ServiceBusReceiverClient receiver = new ServiceBusClientBuilder().connectionString(CONNECTION_STRING)
                .receiver().queueName(queue).subQueue(isDead ? SubQueue.DEAD_LETTER_QUEUE : SubQueue.NONE)
                .buildClient()) {
            return work.apply(receiver);
        }
    }

    private static ServiceBusReceivedMessage deadLetter(String queue) {
        return looking(queue, true,
            receiver -> receiver.receiveMessages(1, DEADLINE).stream().findFirst().orElseThrow());
    }

    /** Nothing is left, soon. */
    private static void becomesEmpty(String queue) {
        looking(queue, false, receiver -> {
            long end = System.nanoTime() + DEADLINE.toNanos();
            while (receiver.peekMessages(1, 1).stream().findAny().isPresent()) {
                assertTrue(System.nanoTime() < end, "messages that are not completed");
            }
            return null;
        });
    }

    @Test
    void s400_a_listener_gets_what_the_template_sends() throws Exception {
        Order order = new Order("bread", 3);
        send("s400", MessageBuilder.withPayload(order)
            .setHeader(ServiceBusMessageHeaders.CORRELATION_ID, "correlated")
            .setHeader(ServiceBusMessageHeaders.TIME_TO_LIVE, Duration.ofMinutes(5))
            .setHeader("mine", "of the application").build());
        Given message = next("s400");
        assertEquals(order, message.payload());
        assertEquals("correlated", message.headers().get(ServiceBusMessageHeaders.CORRELATION_ID));
        assertEquals("of the application", message.headers().get("mine"));
        assertEquals(1L, message.headers().get(ServiceBusMessageHeaders.SEQUENCE_NUMBER));
        assertEquals(Duration.ofMinutes(5), message.headers().get(ServiceBusMessageHeaders.TIME_TO_LIVE));
        becomesEmpty("s400");
    }

    @Test
    void s401_what_a_listener_always_fails_for_is_a_dead_letter() throws Exception {
        send("s401", "good");
        send("s401", "bad");
        ServiceBusReceivedMessage letter = deadLetter("s401");
        assertEquals("bad", letter.getBody().toString());
        assertEquals("MaxDeliveryCountExceeded", letter.getDeadLetterReason());
        send("s401", "good, too");
        List<String> texts = new ArrayList<>();
        for (int n = 0; n < 5; n += 1) {
            texts.add(String.valueOf(next("s401").payload()));
        }
        assertEquals(List.of("bad", "bad", "bad", "good", "good, too"), texts.stream().sorted().toList());
        assertNull(application().seen("s401").poll(1, TimeUnit.SECONDS));
        becomesEmpty("s401");
    }

    @Test
    void s402_sessions_each_in_its_order() throws Exception {
        for (int n = 1; n <= 4; n += 1) {
            for (String session : List.of("a", "b", "c", "d", "e")) {
                send("s402", MessageBuilder.withPayload(session + n)
                    .setHeader(ServiceBusMessageHeaders.SESSION_ID, session).build());
            }
        }
        Map<Object, List<Object>> sessions = new TreeMap<>();
        for (int n = 0; n < 20; n += 1) {
            Given message = next("s402");
            Object session = message.headers().get(ServiceBusMessageHeaders.SESSION_ID);
            sessions.computeIfAbsent(session, id -> new ArrayList<>()).add(message.payload());
        }
        for (String session : List.of("a", "b", "c", "d", "e")) {
            assertEquals(List.of(session + 1, session + 2, session + 3, session + 4), sessions.get(session));
        }
    }

    @Test
    void s403_a_listener_settles_by_itself() throws Exception {
        send("s403", "bad");
        assertEquals("bad", next("s403").payload());
        assertEquals("spring said so", deadLetter("s403").getDeadLetterReason());
        send("s403", "again");
        assertEquals("again", next("s403").payload());
        Given again = next("s403");
        assertEquals("again", again.payload());
        assertEquals(1L, again.headers().get(ServiceBusMessageHeaders.DELIVERY_COUNT));
        long begin = System.nanoTime();
        send("s403", MessageBuilder.withPayload("later")
            .setHeader(ServiceBusMessageHeaders.SCHEDULED_ENQUEUE_TIME, OffsetDateTime.now().plusSeconds(3)).build());
        assertEquals("later", next("s403").payload());
        assertTrue(System.nanoTime() - begin > 2_500_000_000L);
        becomesEmpty("s403");
    }

    /** The answer comes by a session of the queue for answers. */
    @Test
    void s404_a_request_is_answered() {
        ServiceBusReceivedMessage answer = template().sendAndReceive("s404", ServiceBusEntityType.QUEUE,
            MessageBuilder.withPayload("question").setHeader(MessageHeaders.REPLY_CHANNEL,
                "s404b").build(), DEADLINE);
        assertNotNull(answer);
        assertEquals("answer to question", answer.getBody().toString());
    }

    @Test
    void s405_a_topic_and_its_subscription() throws Exception {
        byte[] body = new byte[100_000];
        body[99_999] = 7;
        ServiceBusTemplate topics = new ServiceBusTemplate(
            program().getBean(ServiceBusProducerFactory.class));
        topics.setDefaultEntityType(ServiceBusEntityType.TOPIC);
        topics.setMessageConverter(template().getMessageConverter());
        topics.sendAsync("s405", MessageBuilder.withPayload(body).build()).block(DEADLINE);
        assertArrayEquals(body, (byte[]) next("s405").payload());
    }
}

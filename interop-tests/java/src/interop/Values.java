package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.core.amqp.models.AmqpMessageBody;
import com.azure.core.amqp.models.AmqpMessageBodyType;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** What is sent is what comes. */
class Values extends Scenarios {
    private static final String LONG_TEXT = "ü€😀".repeat(50);

    /** Every scalar of AMQP that Java has a type for; its unsigned integers and decimals it has not. */
    private static final List<Object> SCALARS = List.of(
        true, false, Byte.MIN_VALUE, Byte.MAX_VALUE, Short.MIN_VALUE, Short.MAX_VALUE, Integer.MIN_VALUE, -1, 0, 127, 128,
        Integer.MAX_VALUE, Long.MIN_VALUE, -129L, 0L, Long.MAX_VALUE, 0f, -0f, Float.POSITIVE_INFINITY, Float.NaN,
        Float.MIN_VALUE, 0d, -0d, Double.NEGATIVE_INFINITY, Double.NaN, Double.MAX_VALUE, 'x', 'ü',
        new UUID(Long.MIN_VALUE, -1), "", "ü€😀", LONG_TEXT);

    @Test
    void s321_values_of_every_type_as_bodies() {
        ServiceBusSenderClient sender = client.sender("s321");
        ServiceBusReceiverClient receiver = client.deleting("s321");
        Map<Object, Object> map = new LinkedHashMap<>();
        map.put("list", List.of(1, "two", List.of()));
        map.put(3L, Map.of("a", true));
        List<Object> values = new ArrayList<>(SCALARS);
        values.addAll(List.of(new Date(0), new Date(-86_400_000L), new Date(Instant.parse("3001-01-01T00:00:00Z")
            .toEpochMilli()), List.of(), List.of(map, List.of("x")), map));
        for (Object value : values) {
            sender.sendMessage(new ServiceBusMessage(AmqpMessageBody.fromValue(value)));
            AmqpMessageBody body = receiveOne(receiver).getRawAmqpMessage().getBody();
            assertEquals(AmqpMessageBodyType.VALUE, body.getBodyType());
            assertEquals(value, body.getValue());
        }
    }

    @Test
    void s322_values_of_every_type_as_properties() {
        ServiceBusMessage sent = message("all");
        Map<String, Object> properties = new HashMap<>();
        for (Object value : SCALARS) {
            properties.put(properties.size() + " " + value.getClass().getSimpleName(), value);
        }
        for (String time : List.of("1970-01-01T00:00:00Z", "1969-12-31T00:00:00Z", "3001-01-01T00:00:00.001Z")) {
            properties.put(time, OffsetDateTime.ofInstant(Instant.parse(time), ZoneOffset.UTC));
        }
        properties.put("null", null);
        sent.getApplicationProperties().putAll(properties);
        send("s322", sent);
        assertEquals(properties, receiveOne(client.receiver("s322")).getApplicationProperties());
    }

    /** W3C's own examples. */
    private static final Map<String, Object> TRACE = Map.of(
        "Diagnostic-Id", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "tracestate", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");

    private static ServiceBusMessage traced(String body) {
        ServiceBusMessage message = message(body);
        message.getApplicationProperties().putAll(TRACE);
        return message;
    }

    @Test
    void s326_tracing_headers_come_back_on_each_way() {
        ServiceBusSenderClient sender = client.sender("s326");
        ServiceBusReceiverClient receiver = client.receiver("s326");
        sender.scheduleMessage(traced("scheduled"), in(Duration.ofSeconds(1)));
        ServiceBusReceivedMessage scheduled = receiveOne(receiver);
        assertEquals(TRACE, scheduled.getApplicationProperties());
        receiver.complete(scheduled);

        sender.sendMessage(traced("deferred"));
        ServiceBusReceivedMessage message = receiveOne(receiver);
        receiver.defer(message);
        ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(message.getSequenceNumber());
        assertEquals(TRACE, deferred.getApplicationProperties());
        receiver.complete(deferred);

        sender.sendMessage(traced("dead"));
        receiver.deadLetter(receiveOne(receiver), new DeadLetterOptions().setDeadLetterReason("why"));
        Map<String, Object> dead =
            new HashMap<>(receiveOne(client.deadLetters("s326")).getApplicationProperties());
        dead.keySet().removeAll(List.of("DeadLetterReason", "DeadLetterErrorDescription"));
        assertEquals(TRACE, dead);

        client.topicSender("s326t").sendMessage(traced("copied"));
        assertEquals(TRACE, receiveOne(client.receiver("s326t/a")).getApplicationProperties());
    }

    @Test
    void s327_what_is_settled_cannot_be_settled_again() {
        sendNumbered("s327", 2);
        ServiceBusReceiverClient receiver = client.receiver("s327");
        List<ServiceBusReceivedMessage> messages = receive(receiver, 2);
        ServiceBusReceivedMessage first = messages.get(0);
        receiver.complete(first);
        for (Runnable settlement : List.<Runnable>of(() -> receiver.complete(first), () -> receiver.abandon(first),
                () -> receiver.defer(first), () -> receiver.deadLetter(first))) {
            assertThrows(RuntimeException.class, settlement::run);
        }
        ServiceBusReceivedMessage second = messages.get(1);
        receiver.abandon(second);
        assertThrows(RuntimeException.class, () -> receiver.complete(second));
        ServiceBusReceivedMessage again = receiveOne(receiver);
        assertEquals("2", again.getBody().toString());
        assertEquals(1, again.getDeliveryCount());
        receiver.complete(again);
        assertEquals(List.of(), peekAll(receiver));
        assertEquals(List.of(), peekAll(client.deadLetters("s327")));
    }
}

package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.amqp.models.AmqpAnnotatedMessage;
import com.azure.core.amqp.models.AmqpMessageBody;
import com.azure.core.amqp.models.AmqpMessageBodyType;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class Sending extends Scenarios {
    @Test
    void s07_a_body_keeps_its_kind_and_its_content() {
        ServiceBusReceiverClient receiver = client.deleting("s07");
        ServiceBusSenderClient sender = client.sender("s07");
        for (byte[] data : List.of(new byte[] {0, 1, -1}, new byte[0])) {
            sender.sendMessage(new ServiceBusMessage(AmqpMessageBody.fromData(data)));
            AmqpMessageBody body = receiveOne(receiver).getRawAmqpMessage().getBody();
            assertEquals(AmqpMessageBodyType.DATA, body.getBodyType());
            assertArrayEquals(data, body.getFirstData());
        }
        for (Object value : List.of("text", 4_000_000_000L, -1, true, Map.of("key", List.of(1, "two")))) {
            sender.sendMessage(new ServiceBusMessage(AmqpMessageBody.fromValue(value)));
            AmqpMessageBody body = receiveOne(receiver).getRawAmqpMessage().getBody();
            assertEquals(AmqpMessageBodyType.VALUE, body.getBodyType());
            assertEquals(value, body.getValue());
        }
        List<Object> sequence = Arrays.asList(1, "two", null);
        sender.sendMessage(new ServiceBusMessage(AmqpMessageBody.fromSequence(sequence)));
        AmqpMessageBody body = receiveOne(receiver).getRawAmqpMessage().getBody();
        assertEquals(AmqpMessageBodyType.SEQUENCE, body.getBodyType());
        assertEquals(sequence, body.getSequence());
    }

    @Test
    void s08_every_property_comes_back_with_its_value_and_type() {
        Map<String, Object> properties = new HashMap<>(Map.of(
            "string", "ü", "empty", "", "true", true, "byte", (byte) -1, "short", (short) -2, "int", -3, "long", 1L << 40,
            "float", 0.5f, "double", 1.5, "uuid", new UUID(1L << 63, 5)));
        properties.put("char", 'x');
        properties.put("time", OffsetDateTime.of(2026, 2, 3, 4, 5, 6, 789_000_000, ZoneOffset.UTC));
        properties.put("duration", Duration.ofMillis(90_061_001));
        properties.put("null", null);
        ServiceBusMessage sent = message("all").setMessageId("id-1").setCorrelationId("correlation")
            .setContentType("text/plain").setSubject("subject").setTo("to").setReplyTo("reply-to")
            .setReplyToSessionId("reply-to-session").setTimeToLive(Duration.ofMinutes(10)).setPartitionKey("key");
        sent.getApplicationProperties().putAll(properties);
        send("s08", sent);

        ServiceBusReceivedMessage message = receiveOne(client.receiver("s08"));
        assertEquals("id-1", message.getMessageId());
        assertEquals("correlation", message.getCorrelationId());
        assertEquals("text/plain", message.getContentType());
        assertEquals("subject", message.getSubject());
        assertEquals("to", message.getTo());
        assertEquals("reply-to", message.getReplyTo());
        assertEquals("reply-to-session", message.getReplyToSessionId());
        assertEquals(Duration.ofMinutes(10), message.getTimeToLive());
        assertEquals("key", message.getPartitionKey());
        assertEquals(properties, message.getApplicationProperties());
    }

    @Test
    void s09_header_and_delivery_annotations_of_the_sender_come_back() {
        ServiceBusMessage sent = message("annotated");
        AmqpAnnotatedMessage raw = sent.getRawAmqpMessage();
        raw.getHeader().setDurable(true).setPriority((short) 9);
        raw.getDeliveryAnnotations().put("my-delivery-annotation", "delivery");
        send("s09", sent);

        AmqpAnnotatedMessage received = receiveOne(client.receiver("s09")).getRawAmqpMessage();
        assertEquals(true, received.getHeader().isDurable());
        assertEquals((short) 9, received.getHeader().getPriority());
        assertEquals("delivery", received.getDeliveryAnnotations().get("my-delivery-annotation"));
    }

    @Test
    void s10_a_batch_of_100_arrives_in_order() {
        ServiceBusSenderClient sender = client.sender("s10");
        ServiceBusMessageBatch batch = sender.createMessageBatch();
        numbered(100).forEach(message -> assertTrue(batch.tryAddMessage(message)));
        sender.sendMessages(batch);
        List<ServiceBusReceivedMessage> messages = receive(client.receiver("s10"), 100);
        assertEquals(texts(1, 100), bodies(messages));
        assertEquals(range(1, 100), numbers(messages));
    }

    @Test
    void s11_small_and_large_messages_come_back_byte_for_byte() {
        ServiceBusReceiverClient receiver = client.deleting("s11");
        ServiceBusSenderClient sender = client.sender("s11");
        for (int size : new int[] {1, 64 * 1024, 200 * 1024}) {
            sender.sendMessage(ofSize(size));
            assertArrayEquals(pattern(size), receiveOne(receiver).getBody().toBytes());
        }
    }

    @Test
    void s12_a_message_that_is_too_large_is_refused_and_the_sender_goes_on() {
        ServiceBusSenderClient sender = client.sender("s12");
        ServiceBusReceiverClient receiver = client.receiver("s12");
        fails(MESSAGE_SIZE_EXCEEDED, () -> sender.sendMessage(ofSize(100 * 1024)));
        receiveNothing(receiver);
        sender.sendMessage(message("small"));
        assertEquals("small", receiveOne(receiver).getBody().toString());
    }

    @Test
    void s13_2000_messages_of_two_senders_arrive_once_and_in_order() {
        List<CompletableFuture<Void>> sends = new ArrayList<>();
        for (int name : new int[] {0, 1}) {
            ServiceBusSenderClient sender = connect().sender("s13");
            sends.add(aside(() -> {
                for (int first = 1; first <= 1_000; first += 50) {
                    List<ServiceBusMessage> batch = new ArrayList<>();
                    for (int index = first; index < first + 50; index += 1) {
                        batch.add(message(index).setSubject(String.valueOf(name)));
                    }
                    sender.sendMessages(batch);
                }
                return null;
            }));
        }
        ServiceBusReceiverClient receiver = client.prefetching("s13", 100);
        List<List<String>> seen = List.of(new ArrayList<>(), new ArrayList<>());
        for (int count = 0; count < 2_000; count += 100) {
            List<ServiceBusReceivedMessage> messages = receive(receiver, 100);
            messages.forEach(each -> seen.get(Integer.parseInt(each.getSubject())).add(each.getBody().toString()));
            completeAll(receiver, messages);
        }
        sends.forEach(CompletableFuture::join);
        assertEquals(List.of(texts(1, 1_000), texts(1, 1_000)), seen);
        assertEquals(List.of(), peekAll(receiver));
    }
}

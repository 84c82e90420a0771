package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class Stamping extends Scenarios {
    @Test
    void s15_numbers_are_given_in_the_order_sent() {
        ServiceBusSenderClient sender = client.sender("s15");
        numbered(3).forEach(sender::sendMessage);
        sender.sendMessages(List.of(message(4), message(5), message(6)));
        sender.sendMessage(message(7));
        List<ServiceBusReceivedMessage> messages = receive(client.receiver("s15"), 7);
        assertEquals(texts(1, 7), bodies(messages));
        assertEquals(range(1, 7), numbers(messages));
    }

    @Test
    void s16_the_enqueued_time_is_that_of_the_send_and_stays() {
        OffsetDateTime before = OffsetDateTime.now();
        send("s16", message(1));
        Duration took = Duration.between(before, OffsetDateTime.now());
        ServiceBusReceiverClient receiver = client.receiver("s16");
        ServiceBusReceivedMessage first = receiveOne(receiver);
        assertNear(first.getEnqueuedTime(), before.plus(took.dividedBy(2)), took.dividedBy(2).plusSeconds(1));
        receiver.abandon(first);
        ServiceBusReceivedMessage second = receiveOne(receiver);
        assertEquals(first.getEnqueuedTime(), second.getEnqueuedTime());
        assertEquals(first.getSequenceNumber(), second.getSequenceNumber());
    }

    @Test
    void s17_a_message_tells_its_number_times_lock_and_count() {
        send("s17", message(1).setTimeToLive(Duration.ofMinutes(10)));
        ServiceBusReceivedMessage message = receiveOne(client.receiver("s17"));
        assertEquals(1, message.getSequenceNumber());
        assertEquals(0, message.getDeliveryCount());
        assertEquals(ServiceBusMessageState.ACTIVE, message.getState());
        assertEquals(message.getLockToken(), UUID.fromString(message.getLockToken()).toString());
        assertEquals(Duration.ofMinutes(10), message.getTimeToLive());
        assertEquals(message.getEnqueuedTime().plusMinutes(10), message.getExpiresAt());
        assertNear(message.getEnqueuedTime(), in(Duration.ZERO), Duration.ofSeconds(3));
        assertNear(message.getLockedUntil(), in(Duration.ofSeconds(30)), Duration.ofSeconds(3));
    }
}

package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class Scheduling extends Scenarios {
    /** The wire carries milliseconds. */
    private static OffsetDateTime later(Duration duration) {
        return in(duration).truncatedTo(ChronoUnit.MILLIS);
    }

    @Test
    void s45_a_scheduled_message_arrives_at_its_time_under_a_new_number() {
        OffsetDateTime time = later(Duration.ofSeconds(3));
        assertEquals(1, client.sender("s45").scheduleMessage(message("due"), time));
        ServiceBusReceiverClient receiver = client.receiver("s45");
        receiveNothing(receiver);
        ServiceBusReceivedMessage message = receiveOne(receiver, Duration.ofSeconds(6));
        assertTrue(!OffsetDateTime.now().isBefore(time));
        assertEquals("due", message.getBody().toString());
        assertEquals(2, message.getSequenceNumber());
        assertFalse(message.getEnqueuedTime().isBefore(time));
        assertTrue(message.getScheduledEnqueueTime().isEqual(time));
    }

    @Test
    void s46_ten_messages_are_scheduled_in_one_call() {
        List<Long> scheduled = new ArrayList<>();
        client.sender("s46").scheduleMessages(numbered(10), later(Duration.ofSeconds(2))).forEach(scheduled::add);
        assertEquals(range(1, 10), scheduled);
        List<ServiceBusReceivedMessage> messages = receive(client.receiver("s46"), 10);
        assertEquals(texts(1, 10), bodies(messages));
        assertEquals(range(11, 20), numbers(messages));
    }

    @Test
    void s47_a_message_may_be_scheduled_by_a_send() {
        ServiceBusSenderClient sender = client.sender("s47");
        OffsetDateTime time = later(Duration.ofSeconds(3));
        sender.sendMessage(message(1).setScheduledEnqueueTime(time));
        sender.sendMessages(List.of(message(2).setScheduledEnqueueTime(time), message("at once")));
        ServiceBusReceiverClient receiver = client.receiver("s47");
        assertEquals(List.of("at once"), bodies(receive(receiver, 1)));
        receiveNothing(receiver);
        assertEquals(List.of("1", "2"), bodies(receive(receiver, 2)));
        assertFalse(OffsetDateTime.now().isBefore(time));
    }

    @Test
    void s48_a_scheduled_message_can_be_peeked() {
        OffsetDateTime time = later(Duration.ofHours(1));
        long number = client.sender("s48").scheduleMessage(message(1), time);
        ServiceBusReceivedMessage message = client.receiver("s48").peekMessage();
        assertEquals(number, message.getSequenceNumber());
        assertEquals(ServiceBusMessageState.SCHEDULED, message.getState());
        assertTrue(message.getScheduledEnqueueTime().isEqual(time));
    }

    @Test
    void s49_cancelled_messages_never_arrive() {
        ServiceBusSenderClient sender = client.sender("s49");
        List<Long> numbers = new ArrayList<>();
        sender.scheduleMessages(numbered(3), later(Duration.ofSeconds(3))).forEach(numbers::add);
        sender.cancelScheduledMessage(numbers.get(0));
        sender.cancelScheduledMessages(numbers.subList(1, 3));
        ServiceBusReceiverClient receiver = client.receiver("s49");
        assertEquals(List.of(), peekAll(receiver));
        receiveNothing(receiver, Duration.ofSeconds(4));
    }

    @Test
    void s50_what_has_become_active_cannot_be_cancelled() {
        ServiceBusSenderClient sender = client.sender("s50");
        long number = sender.scheduleMessage(message(1), later(Duration.ofSeconds(1)));
        ServiceBusReceiverClient receiver = client.receiver("s50");
        receiver.abandon(receiveOne(receiver));
        // The SDK takes *message not found* for done.
        sender.cancelScheduledMessage(number);
        assertEquals(List.of("1"), bodies(receive(receiver, 1)));
    }

    @Test
    void s51_a_time_in_the_past_is_now() {
        assertEquals(1, client.sender("s51").scheduleMessage(message(1), later(Duration.ofMinutes(-1))));
        assertEquals(List.of("1"), bodies(receive(client.receiver("s51"), 1, Duration.ofSeconds(3))));
    }

    @Test
    void s52_a_cancel_of_what_is_not_there_touches_nothing() {
        ServiceBusSenderClient sender = client.sender("s52");
        List<Long> numbers = new ArrayList<>();
        sender.scheduleMessages(numbered(2), later(Duration.ofHours(1))).forEach(numbers::add);
        sender.cancelScheduledMessage(4711);
        sender.cancelScheduledMessage(numbers.get(0));
        sender.cancelScheduledMessages(numbers);
        assertEquals(List.of("2"), bodies(peekAll(client.receiver("s52"))));
    }
}

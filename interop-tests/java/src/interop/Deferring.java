package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.DeferOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class Deferring extends Scenarios {
    /** Sends messages, receives and defers them, and returns their numbers. */
    private List<Long> defer(ServiceBusReceiverClient receiver, String queue, int count) {
        sendNumbered(queue, count);
        List<ServiceBusReceivedMessage> messages = receive(receiver, count);
        messages.forEach(receiver::defer);
        return numbers(messages);
    }

    private static List<ServiceBusReceivedMessage> ask(ServiceBusReceiverClient receiver, Long... numbers) {
        return receiver.receiveDeferredMessageBatch(List.of(numbers)).stream().toList();
    }

    @Test
    void s53_deferred_messages_are_received_by_their_numbers() {
        ServiceBusReceiverClient receiver = client.receiver("s53");
        List<Long> wanted = defer(receiver, "s53", 3);
        receiveNothing(receiver);
        List<ServiceBusReceivedMessage> messages = new ArrayList<>();
        messages.add(receiver.receiveDeferredMessage(wanted.get(0)));
        messages.addAll(ask(receiver, wanted.get(1), wanted.get(2)));
        assertEquals(range(1, 3), numbers(messages));
        assertEquals(texts(1, 3), bodies(messages));
        for (ServiceBusReceivedMessage message : messages) {
            assertEquals(ServiceBusMessageState.DEFERRED, message.getState());
            assertTrue(message.getLockedUntil().isAfter(in(Duration.ZERO)));
            receiver.complete(message);
        }
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s54_deferred_messages_are_received_and_deleted() {
        Long[] wanted = defer(client.receiver("s54"), "s54", 2).toArray(Long[]::new);
        ServiceBusReceiverClient receiver = client.deleting("s54");
        assertEquals(texts(1, 2), bodies(ask(receiver, wanted)));
        assertEquals(List.of(), peekAll(receiver));
        assertEquals(List.of(), ask(receiver, wanted));
    }

    @Test
    void s55_deferred_messages_are_received_all_or_not_at_all() {
        ServiceBusReceiverClient receiver = client.receiver("s55");
        defer(receiver, "s55", 3);
        // The SDK shows *message not found* as no message.
        assertEquals(List.of(), ask(receiver, 3L, 4L));
        assertEquals(List.of(), ask(receiver, 5L, 6L, 7L));
        assertEquals(1, connect().receiver("s55").receiveDeferredMessage(1).getSequenceNumber());
        assertEquals(List.of(), ask(receiver, 1L));
        assertEquals(List.of(3L), numbers(ask(receiver, 3L)));
    }

    @Test
    void s56_deferred_messages_are_settled_by_their_lock_tokens() {
        ServiceBusReceiverClient receiver = client.receiver("s56");
        defer(receiver, "s56", 3);
        List<ServiceBusReceivedMessage> messages = ask(receiver, 1L, 2L, 3L);
        receiver.abandon(messages.get(0));
        receiver.deadLetter(messages.get(1),
            new DeadLetterOptions().setDeadLetterReason("why").setDeadLetterErrorDescription("because"));
        assertTrue(receiver.renewMessageLock(messages.get(2)).isAfter(in(Duration.ZERO)));
        receiver.defer(messages.get(2));
        receiveNothing(receiver);
        assertEquals(List.of("1", "3"), bodies(ask(receiver, 1L, 3L)));
        ServiceBusReceivedMessage letter = receiveOne(client.deadLetters("s56"));
        assertEquals("2", letter.getBody().toString());
        assertEquals("why", letter.getDeadLetterReason());
        assertEquals("because", letter.getDeadLetterErrorDescription());
    }

    @Test
    void s57_a_deferred_message_can_be_peeked() {
        ServiceBusReceiverClient receiver = client.receiver("s57");
        List<Long> wanted = defer(receiver, "s57", 1);
        List<ServiceBusReceivedMessage> seen = peekAll(receiver);
        assertEquals(wanted, numbers(seen));
        assertEquals(ServiceBusMessageState.DEFERRED, seen.get(0).getState());
    }

    @Test
    void s58_a_deferred_message_does_not_expire() {
        send("s58", message("kept").setTimeToLive(Duration.ofSeconds(2)));
        ServiceBusReceiverClient receiver = client.receiver("s58");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        receiver.defer(message);
        receiveNothing(client.deadLetters("s58"), Duration.ofSeconds(4));
        assertEquals("kept", receiver.receiveDeferredMessage(message.getSequenceNumber()).getBody().toString());
    }

    @Test
    void s59_a_deferral_changes_the_properties_named() {
        ServiceBusMessage sent = with("attempt", 0);
        sent.getApplicationProperties().put("kept", true);
        send("s59", sent);
        ServiceBusReceiverClient receiver = client.receiver("s59");
        receiver.defer(receiveOne(receiver), new DeferOptions().setPropertiesToModify(Map.of("attempt", 1)));
        ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(1);
        assertEquals(Map.of("attempt", 1, "kept", true), deferred.getApplicationProperties());
        receiver.abandon(deferred, new AbandonOptions().setPropertiesToModify(Map.of("attempt", 2)));
        assertEquals(2, receiver.receiveDeferredMessage(1).getApplicationProperties().get("attempt"));
    }
}

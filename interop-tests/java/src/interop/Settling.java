package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGE_LOCK_LOST;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class Settling extends Scenarios {
    private static final DeadLetterOptions WHY =
        new DeadLetterOptions().setDeadLetterReason("why").setDeadLetterErrorDescription("because");

    @Test
    void s20_an_abandoned_message_comes_again_before_the_next() {
        sendNumbered("s20", 2);
        ServiceBusReceiverClient receiver = client.receiver("s20");
        ServiceBusReceivedMessage first = receiveOne(receiver);
        receiver.abandon(first);
        List<ServiceBusReceivedMessage> next = receive(receiver, 2);
        assertEquals(List.of(1L, 2L), numbers(next));
        assertEquals(0, first.getDeliveryCount());
        assertEquals(List.of(1L, 0L), counts(next));
        assertNotEquals(first.getLockToken(), next.get(0).getLockToken());
    }

    @Test
    void s21_an_abandon_changes_the_properties_named() {
        ServiceBusMessage message = with("attempt", 0);
        message.getApplicationProperties().put("kept", "kept");
        send("s21", message);
        ServiceBusReceiverClient receiver = client.receiver("s21");
        receiver.abandon(receiveOne(receiver),
            new AbandonOptions().setPropertiesToModify(Map.of("attempt", 1, "added", "new")));
        ServiceBusReceivedMessage again = receiveOne(receiver);
        assertEquals(Map.of("attempt", 1, "kept", "kept", "added", "new"), again.getApplicationProperties());
        receiver.abandon(again, new AbandonOptions().setPropertiesToModify(Map.of("attempt", 2)));
        assertEquals(2, receiveOne(receiver).getApplicationProperties().get("attempt"));
    }

    @Test
    void s22_a_dead_letter_carries_its_reason_and_description() {
        ServiceBusMessage message = with("key", "value");
        send("s22", message.setSubject("subject"));
        ServiceBusReceiverClient receiver = client.receiver("s22");
        ServiceBusReceivedMessage received = receiveOne(receiver);
        receiver.deadLetter(received, WHY);
        receiveNothing(receiver);
        ServiceBusReceivedMessage dead = receiveOne(client.deadLetters("s22"));
        assertEquals("why", dead.getDeadLetterReason());
        assertEquals("because", dead.getDeadLetterErrorDescription());
        assertEquals("value", dead.getBody().toString());
        assertEquals("subject", dead.getSubject());
        assertEquals("value", dead.getApplicationProperties().get("key"));
        assertEquals(received.getSequenceNumber(), dead.getSequenceNumber());
    }

    @Test
    void s23_a_message_is_dead_lettered_without_a_reason_or_with_properties() {
        sendNumbered("s23", 2);
        ServiceBusReceiverClient receiver = client.receiver("s23");
        List<ServiceBusReceivedMessage> messages = receive(receiver, 2);
        receiver.deadLetter(messages.get(0));
        receiver.deadLetter(messages.get(1), new DeadLetterOptions().setDeadLetterReason("why")
            .setDeadLetterErrorDescription("because").setPropertiesToModify(Map.of("attempt", 1)));
        List<ServiceBusReceivedMessage> dead = receive(client.deadLetters("s23"), 2);
        assertEquals(List.of("1", "2"), bodies(dead));
        assertNull(dead.get(0).getDeadLetterReason());
        assertEquals("why", dead.get(1).getDeadLetterReason());
        assertEquals(1, dead.get(1).getApplicationProperties().get("attempt"));
    }

    @Test
    void s24_the_third_failed_delivery_is_the_last() {
        sendNumbered("s24", 1);
        ServiceBusReceiverClient receiver = client.receiver("s24");
        for (long count = 0; count < 3; count += 1) {
            ServiceBusReceivedMessage message = receiveOne(receiver);
            assertEquals(count, message.getDeliveryCount());
            receiver.abandon(message);
        }
        receiveNothing(receiver);
        ServiceBusReceivedMessage dead = receiveOne(client.deadLetters("s24"));
        assertEquals("MaxDeliveryCountExceeded", dead.getDeadLetterReason());
        assertEquals("Message could not be consumed after 3 delivery attempts.", dead.getDeadLetterErrorDescription());
    }

    @Test
    void s25_one_delivery_is_all_there_is() {
        sendNumbered("s25", 1);
        ServiceBusReceiverClient receiver = client.receiver("s25");
        receiver.abandon(receiveOne(receiver));
        assertEquals("MaxDeliveryCountExceeded", receiveOne(client.deadLetters("s25")).getDeadLetterReason());
    }

    @Test
    void s26_a_lock_that_has_expired_frees_the_message_and_is_lost() {
        sendNumbered("s26", 1);
        ServiceBusReceiverClient receiver = client.receiver("s26");
        ServiceBusReceivedMessage first = receiveOne(receiver);
        long begin = System.nanoTime();
        ServiceBusReceivedMessage second = receiveOne(receiver, Duration.ofSeconds(15));
        assertTrue(secondsSince(begin) >= 4);
        assertEquals(1, second.getDeliveryCount());
        assertNotEquals(first.getLockToken(), second.getLockToken());
        fails(MESSAGE_LOCK_LOST, () -> receiver.complete(first));
        receiver.complete(second);
        receiveNothing(receiver);
    }

    @Test
    void s27_a_renewed_lock_lasts() {
        sendNumbered("s27", 1);
        ServiceBusReceiverClient receiver = client.receiver("s27");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        OffsetDateTime until = message.getLockedUntil();
        for (int round = 0; round < 4; round += 1) {
            receiveNothing(receiver, Duration.ofSeconds(2));
            OffsetDateTime renewed = receiver.renewMessageLock(message);
            assertTrue(renewed.isAfter(until));
            assertNear(renewed, in(Duration.ofSeconds(5)), Duration.ofSeconds(2));
            until = renewed;
        }
        receiver.complete(message);
        receiveNothing(receiver);
    }

    @Test
    void s28_a_lock_that_is_gone_cannot_be_renewed() {
        sendNumbered("s28", 2);
        ServiceBusReceiverClient receiver = client.receiver("s28");
        List<ServiceBusReceivedMessage> messages = receive(receiver, 2);
        receiver.complete(messages.get(0));
        fails(MESSAGE_LOCK_LOST, () -> receiver.renewMessageLock(messages.get(0)));
        receiveOne(receiver, Duration.ofSeconds(15));
        fails(MESSAGE_LOCK_LOST, () -> receiver.renewMessageLock(messages.get(1)));
    }

    @Test
    void s29_the_sdks_own_renewal_holds_a_lock() {
        sendNumbered("s29", 1);
        ServiceBusReceiverClient receiver = client.receiver("s29");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        receiver.renewMessageLock(message, Duration.ofSeconds(30), error -> { });
        receiveNothing(client.receiver("s29"), Duration.ofSeconds(8));
        receiver.complete(message);
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s30_a_message_is_completed_on_another_connection_by_its_lock_token() throws Exception {
        sendNumbered("s30", 1);
        Connection other = connect();
        ServiceBusReceivedMessage message = receiveOne(other.receiver("s30"));
        other.close();
        ServiceBusReceiverClient receiver = client.receiver("s30");
        receiver.complete(message);
        receiveNothing(receiver);
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s37_messages_are_completed_in_reverse_order() {
        sendNumbered("s37", 20);
        ServiceBusReceiverClient receiver = client.receiver("s37");
        List<ServiceBusReceivedMessage> messages = new ArrayList<>(receive(receiver, 20));
        Collections.reverse(messages);
        completeAll(receiver, messages);
        assertEquals(List.of(), peekAll(receiver));
    }
}

package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED;
import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND;
import static com.azure.messaging.servicebus.ServiceBusFailureReason.QUOTA_EXCEEDED;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class Topics extends Scenarios {
    private void publish(String topic, ServiceBusMessage... messages) {
        ServiceBusSenderClient sender = client.topicSender(topic);
        for (ServiceBusMessage message : messages) {
            sender.sendMessage(message);
        }
        sender.close();
    }

    @Test
    void s141_every_subscription_has_its_own_copy_with_its_own_number_and_the_topics() {
        for (int n = 1; n <= 5; n += 1) {
            publish("s141", with("n", n).setSubject("subject"));
        }
        for (String subscription : List.of("a", "b", "odd")) {
            List<Integer> wanted = subscription.equals("odd") ? List.of(1, 3, 5) : List.of(1, 2, 3, 4, 5);
            List<ServiceBusReceivedMessage> messages = receive(client.receiver("s141/" + subscription), wanted.size());
            assertEquals(range(1, wanted.size()), numbers(messages));
            for (int index = 0; index < wanted.size(); index += 1) {
                ServiceBusReceivedMessage message = messages.get(index);
                assertEquals(wanted.get(index).longValue(), message.getEnqueuedSequenceNumber());
                assertEquals(wanted.get(index).toString(), message.getBody().toString());
                assertEquals(Map.of("n", wanted.get(index)), message.getApplicationProperties());
                assertEquals("subject", message.getSubject());
            }
        }
        receiveNothing(client.receiver("s141/odd"));
    }

    @Test
    void s142_a_topic_without_subscriptions_takes_what_it_gets() {
        publish("s142", message(1));
        client.topicSender("s142").sendMessages(numbered(2));
    }

    @Test
    void s143_what_happens_at_one_subscription_does_not_at_another() {
        client.topicSender("s143").sendMessages(numbered(3));
        ServiceBusReceiverClient a = client.receiver("s143/a");
        ServiceBusReceiverClient b = client.receiver("s143/b");
        List<ServiceBusReceivedMessage> messages = receive(a, 3);
        a.complete(messages.get(0));
        a.defer(messages.get(1));
        a.abandon(messages.get(2));
        List<ServiceBusReceivedMessage> others = receive(b, 3);
        assertEquals(texts(1, 3), bodies(others));
        assertEquals(List.of(0L, 0L, 0L), counts(others));
        ServiceBusReceivedMessage again = receiveOne(a);
        assertEquals("3", again.getBody().toString());
        assertEquals(1, again.getDeliveryCount());
        assertEquals(List.of(), bodies(b.receiveDeferredMessageBatch(List.of(2L))));
        assertEquals("2", a.receiveDeferredMessage(2).getBody().toString());
        Set<String> tokens = new HashSet<>();
        messages.forEach(message -> tokens.add(message.getLockToken()));
        others.forEach(message -> tokens.add(message.getLockToken()));
        assertEquals(6, tokens.size());
    }

    @Test
    void s144_a_subscription_has_a_dead_letter_queue_of_its_own() {
        publish("s144", message(1));
        ServiceBusReceiverClient a = client.receiver("s144/a");
        a.deadLetter(receiveOne(a),
            new DeadLetterOptions().setDeadLetterReason("why").setDeadLetterErrorDescription("because"));
        ServiceBusReceivedMessage letter = receiveOne(client.deadLetters("s144/a"));
        assertEquals("1", letter.getBody().toString());
        assertEquals("why", letter.getDeadLetterReason());
        assertEquals("because", letter.getDeadLetterErrorDescription());
        assertEquals(List.of("1"), bodies(receive(client.receiver("s144/b"), 1)));
        assertEquals(List.of(), peekAll(client.deadLetters("s144/b")));
    }

    @Test
    void s145_a_subscription_may_have_sessions() {
        publish("s145", inSession("x", "1"), inSession("y", "2"), inSession("x", "3"));
        List<ServiceBusReceivedMessage> all = receive(client.receiver("s145/plain"), 3);
        assertEquals(List.of("x", "y", "x"), all.stream().map(ServiceBusReceivedMessage::getSessionId).toList());
        ServiceBusReceiverClient x = client.session("s145/s", "x");
        assertEquals(List.of("1", "3"), bodies(receive(x, 2)));
        x.setSessionState(new byte[] {1});
        assertNear(x.renewSessionLock(), in(Duration.ofMinutes(1)), Duration.ofSeconds(5));
        ServiceBusReceiverClient next = client.nextSession("s145/s");
        assertEquals("y", next.getSessionId());
        assertEquals(List.of("2"), bodies(receive(next, 1)));
        x.close();
        ServiceBusReceiverClient again = connect().nextSession("s145/s");
        assertEquals("x", again.getSessionId());
        assertArrayEquals(new byte[] {1}, again.getSessionState());
        assertEquals(List.of(0L, 0L), counts(receive(again, 2)));
    }

    @Test
    void s146_a_message_without_a_session_is_a_dead_letter_where_sessions_are_required() {
        publish("s146", message(1));
        assertEquals(List.of("1"), bodies(receive(client.receiver("s146/plain"), 1)));
        ServiceBusReceivedMessage letter = receiveOne(client.deadLetters("s146/s"));
        assertEquals("1", letter.getBody().toString());
        assertEquals("Session ID is null.", letter.getDeadLetterReason());
    }

    @Test
    void s147_messages_scheduled_on_a_topic_come_to_its_subscriptions_when_they_are_due() {
        ServiceBusSenderClient sender = client.topicSender("s147");
        OffsetDateTime time = in(Duration.ofSeconds(3)).truncatedTo(ChronoUnit.MILLIS);
        sender.scheduleMessage(message("scheduled"), time);
        sender.sendMessage(message("sent").setScheduledEnqueueTime(time));
        List<ServiceBusReceiverClient> receivers = List.of(client.receiver("s147/a"), client.receiver("s147/b"));
        receivers.forEach(receiver -> assertEquals(List.of(), peekAll(receiver)));
        for (ServiceBusReceiverClient receiver : receivers) {
            List<ServiceBusReceivedMessage> messages = receive(receiver, 2);
            assertEquals(Set.of("scheduled", "sent"), Set.copyOf(bodies(messages)));
            for (ServiceBusReceivedMessage message : messages) {
                assertFalse(message.getEnqueuedTime().isBefore(time));
                assertTrue(message.getScheduledEnqueueTime().isEqual(time));
            }
            receiveNothing(receiver);
        }
    }

    @Test
    void s148_messages_scheduled_on_a_topic_are_cancelled() {
        ServiceBusSenderClient sender = client.topicSender("s148");
        List<Long> numbers = new ArrayList<>();
        sender.scheduleMessages(numbered(3), in(Duration.ofSeconds(2))).forEach(numbers::add);
        sender.cancelScheduledMessage(numbers.get(0));
        sender.cancelScheduledMessages(numbers.subList(1, 3));
        receiveNothing(client.receiver("s148/a"), Duration.ofSeconds(4));
    }

    @Test
    void s149_nothing_is_received_from_a_topic_or_sent_to_a_subscription() {
        ServiceBusReceiverClient receiver = client.receiver("s149");
        refuses("", () -> bodies(receiver.receiveMessages(1, DEADLINE)));
        refuses("", () -> client.sender("s149/Subscriptions/a").sendMessage(message(1)));
        assertEquals(List.of(), peekAll(client.receiver("s149/a")));
    }

    @Test
    void s150_an_unknown_subscription_is_not_found() {
        for (String entity : List.of("s150/no-such", "no-such/a")) {
            ServiceBusReceiverClient receiver = client.receiver(entity);
            fails(MESSAGING_ENTITY_NOT_FOUND, "could not be found", () -> bodies(receiver.receiveMessages(1, DEADLINE)));
        }
    }

    @Test
    void s151_names_of_topics_and_subscriptions_do_not_depend_on_case() {
        publish("S151", message(1));
        assertEquals(List.of("1"), bodies(receive(client.receiver("s151/mixed"), 1)));
    }

    @Test
    void s152_locks_of_a_subscription_expire_and_are_renewed_as_its_own_properties_say() {
        publish("s152", message(1));
        ServiceBusReceiverClient a = client.receiver("s152/a");
        ServiceBusReceivedMessage message = receiveOne(a);
        receiveNothing(a, Duration.ofSeconds(3));
        assertTrue(a.renewMessageLock(message).isAfter(message.getLockedUntil()));
        long begin = System.nanoTime();
        ServiceBusReceivedMessage again = receiveOne(a);
        assertTrue(secondsSince(begin) >= 4);
        assertEquals(1, again.getDeliveryCount());
        assertEquals("MaxDeliveryCountExceeded", receiveOne(client.deadLetters("s152/a")).getDeadLetterReason());
        assertEquals(0, receiveOne(client.receiver("s152/b")).getDeliveryCount());
    }

    @Test
    void s153_a_message_lives_as_long_as_topic_and_subscription_allow() {
        publish("s153", message(1));
        long begin = System.nanoTime();
        assertEquals("TTLExpiredException", receiveOne(client.deadLetters("s153/short")).getDeadLetterReason());
        assertTrue(secondsSince(begin) < 3);
        assertEquals(List.of("1"), bodies(peekAll(client.receiver("s153/keep"))));
        assertEquals("TTLExpiredException", receiveOne(client.deadLetters("s153/keep")).getDeadLetterReason());
        assertTrue(secondsSince(begin) > 2.5);
        receiveNothing(client.receiver("s153/drop"));
        assertEquals(List.of(), peekAll(client.deadLetters("s153/drop")));
    }

    @Test
    void s154_a_batch_and_a_large_message_are_copied_byte_for_byte() {
        ServiceBusSenderClient sender = client.topicSender("s154");
        sender.sendMessages(numbered(100));
        sender.sendMessage(ofSize(200 * 1024));
        for (String subscription : List.of("s154/a", "s154/b", "s154/c")) {
            ServiceBusReceiverClient receiver = client.receiver(subscription);
            List<ServiceBusReceivedMessage> messages = receive(receiver, 101);
            assertEquals(texts(1, 100), bodies(messages.subList(0, 100)));
            assertArrayEquals(pattern(200 * 1024), messages.get(100).getBody().toBytes());
            completeAll(receiver, messages);
            assertEquals(List.of(), peekAll(receiver));
        }
    }

    @Test
    void s155_what_is_disabled_is_refused() {
        fails(MESSAGING_ENTITY_DISABLED, () -> publish("s155", message(1)));
        receiveNothing(client.receiver("s155/a"));
        publish("s155b", message(1));
        assertEquals(List.of("1"), bodies(receive(client.receiver("s155b/on"), 1)));
        ServiceBusReceiverClient off = client.receiver("s155b/off");
        fails(MESSAGING_ENTITY_DISABLED, () -> bodies(off.receiveMessages(1, DEADLINE)));
    }

    @Test
    void s156_a_topic_that_is_full_takes_more_when_its_subscriptions_have_been_emptied() {
        ServiceBusSenderClient sender = client.topicSender("s156");
        int sent = 0;
        ServiceBusException refusal = null;
        while (sent < 30 && refusal == null) {
            refusal = refusal(sender);
            sent += refusal == null ? 1 : 0;
        }
        assertTrue(sent > 0 && refusal != null && refusal.getReason() == QUOTA_EXCEEDED, String.valueOf(refusal));
        for (String subscription : List.of("s156/a", "s156/b")) {
            ServiceBusReceiverClient receiver = client.receiver(subscription);
            completeAll(receiver, receive(receiver, sent));
        }
        long begin = System.nanoTime();
        while (refusal(sender) != null) {
            assertTrue(secondsSince(begin) < 5, "still full");
        }
    }

    /** What a message of 100 KiB is refused with, or null. */
    private static ServiceBusException refusal(ServiceBusSenderClient sender) {
        try {
            sender.sendMessage(ofSize(100 * 1024));
            return null;
        } catch (ServiceBusException error) {
            return error;
        }
    }

    @Test
    void s157_subscriptions_are_peeked_like_queues() {
        publish("s157", inSession("x", "1"), inSession("y", "2"), inSession("x", "3"));
        ServiceBusReceiverClient a = client.receiver("s157/a");
        a.defer(receive(a, 2).get(0));
        List<ServiceBusReceivedMessage> seen = peekAll(a);
        assertEquals(texts(1, 3), bodies(seen));
        assertEquals(
            List.of(ServiceBusMessageState.DEFERRED, ServiceBusMessageState.ACTIVE, ServiceBusMessageState.ACTIVE),
            seen.stream().map(ServiceBusReceivedMessage::getState).toList());
        assertEquals(List.of("1", "3"), bodies(peekAll(client.session("s157/s", "x"))));
    }
}

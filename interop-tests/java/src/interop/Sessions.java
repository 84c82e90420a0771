package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.SESSION_CANNOT_BE_LOCKED;
import static com.azure.messaging.servicebus.ServiceBusFailureReason.SESSION_LOCK_LOST;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusProcessorClient;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class Sessions extends Scenarios {
    private static final Duration AT_ONCE = Duration.ofSeconds(2);

    /** Sends messages to these sessions, with bodies 1, 2, 3… */
    private void sendTo(String queue, String... sessions) {
        ServiceBusSenderClient sender = client.sender(queue);
        for (int index = 0; index < sessions.length; index += 1) {
            sender.sendMessage(inSession(sessions[index], String.valueOf(index + 1)));
        }
        sender.close();
    }

    /** Checks that there is no next session, which takes about this long. */
    private void noNextSession(String queue, Duration wait) {
        Connection other = connect(wait);
        IllegalStateException failure = assertThrows(IllegalStateException.class, () -> other.nextSession(queue));
        assertEquals("com.microsoft:timeout", failure.getMessage());
    }

    @Test
    void s101_a_named_session_brings_its_messages_and_no_others_in_order() {
        sendTo("s101", "a", "b", "a", "b", "a");
        for (String[] wanted : new String[][] {{"a", "1", "3", "5"}, {"b", "2", "4"}}) {
            ServiceBusReceiverClient receiver = client.session("s101", wanted[0]);
            assertEquals(wanted[0], receiver.getSessionId());
            List<ServiceBusReceivedMessage> messages = receive(receiver, wanted.length - 1);
            assertEquals(List.of(wanted).subList(1, wanted.length), bodies(messages));
            for (ServiceBusReceivedMessage message : messages) {
                assertEquals(wanted[0], message.getSessionId());
                assertEquals(9999, message.getLockedUntil().getYear(), "the session has the lock");
            }
            receiveNothing(receiver);
        }
    }

    @Test
    void s102_the_next_session_is_that_of_the_message() {
        sendTo("s102", "x");
        ServiceBusReceiverClient receiver = client.nextSession("s102");
        assertEquals("x", receiver.getSessionId());
        assertEquals(List.of("1"), bodies(receive(receiver, 1)));
    }

    @Test
    void s103_two_have_the_two_sessions_and_a_third_has_none() {
        sendTo("s103", "x", "y");
        List<ServiceBusReceiverClient> receivers = List.of(client.nextSession("s103"), connect().nextSession("s103"));
        assertEquals(Set.of("x", "y"), Set.of(receivers.get(0).getSessionId(), receivers.get(1).getSessionId()));
        receivers.forEach(each -> assertEquals(each.getSessionId(), receiveOne(each).getSessionId()));
        noNextSession("s103", Duration.ofSeconds(3));
    }

    @Test
    void s104_the_wait_for_a_session_ends_when_it_was_asked_to() {
        long begin = System.nanoTime();
        // The SDK asks the broker for a second less.
        noNextSession("s104", Duration.ofSeconds(5));
        double waited = secondsSince(begin);
        assertTrue(3 <= waited && waited <= 10, () -> waited + " s");
    }

    @Test
    void s105_a_session_that_comes_while_one_waits_is_granted() throws Exception {
        CompletableFuture<ServiceBusReceiverClient> waiting = aside(() -> client.nextSession("s105"));
        receiveNothing(client.session("s105", "other"));
        sendTo("s105", "late");
        ServiceBusReceiverClient receiver = within(AT_ONCE, waiting);
        assertEquals("late", receiver.getSessionId());
        assertEquals(List.of("1"), bodies(receive(receiver, 1)));
    }

    @Test
    void s106_a_session_that_becomes_free_while_one_waits_is_granted() throws Exception {
        sendTo("s106", "x", "x");
        ServiceBusReceiverClient first = client.session("s106", "x");
        first.complete(receiveOne(first));
        Connection other = connect();
        CompletableFuture<ServiceBusReceiverClient> waiting = aside(() -> other.nextSession("s106"));
        receiveNothing(client.session("s106", "other"));
        first.close();
        ServiceBusReceiverClient receiver = within(AT_ONCE, waiting);
        assertEquals("x", receiver.getSessionId());
        assertEquals(List.of("2"), bodies(receive(receiver, 1)));
    }

    @Test
    void s107_a_wait_that_was_given_up_locks_nothing() {
        // After twice this time, when its broker does not answer, the SDK gives up by itself; the broker answers first.
        noNextSession("s107", Duration.ofSeconds(2));
        sendTo("s107", "x");
        ServiceBusReceiverClient receiver = client.session("s107", "x");
        assertEquals(List.of("1"), bodies(receive(receiver, 1)));
    }

    @Test
    void s108_a_session_that_never_was_is_granted_once() throws Exception {
        ServiceBusReceiverClient receiver = within(AT_ONCE, aside(() -> client.session("s108", "new")));
        fails(SESSION_CANNOT_BE_LOCKED, () -> connect().session("s108", "new"));
        sendTo("s108", "new");
        assertEquals(List.of("1"), bodies(receive(receiver, 1)));
    }

    @Test
    void s109_a_session_that_is_locked_elsewhere_is_refused_until_it_is_free() {
        ServiceBusReceiverClient receiver = client.session("s109", "x");
        Connection other = connect();
        long begin = System.nanoTime();
        fails(SESSION_CANNOT_BE_LOCKED, () -> other.session("s109", "x"));
        assertTrue(secondsSince(begin) < 5);
        receiver.close();
        accepted(other, "s109", "x", AT_ONCE);
    }

    /**
     * Tries until a session is granted.
     *
     * <p>On another connection than the one that gave the session up: the SDK names a link after its session, and may give
     * out again the link that it is closing.
     */
    private static ServiceBusReceiverClient accepted(Connection connection, String queue, String id, Duration deadline) {
        long begin = System.nanoTime();
        while (true) {
            try {
                return connection.session(queue, id);
            } catch (RuntimeException error) {
                fails(SESSION_CANNOT_BE_LOCKED, () -> {
                    throw error;
                });
                assertTrue(secondsSince(begin) < deadline.toMillis() / 1e3, () -> "still locked: " + id);
            }
        }
    }

    @Test
    void s110_a_renewed_session_lasts() {
        sendTo("s110", "x");
        ServiceBusReceiverClient receiver = client.session("s110", "x");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        OffsetDateTime until = OffsetDateTime.now();
        for (int round = 0; round < 4; round += 1) {
            receiveNothing(receiver, Duration.ofSeconds(2));
            fails(SESSION_CANNOT_BE_LOCKED, () -> connect().session("s110", "x"));
            OffsetDateTime renewed = receiver.renewSessionLock();
            assertTrue(renewed.isAfter(until));
            assertNear(renewed, in(Duration.ofSeconds(5)), Duration.ofSeconds(2));
            until = renewed;
        }
        receiver.complete(message);
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s111_a_session_that_expires_is_lost_and_what_was_received_counts() {
        sendTo("s111", "x");
        ServiceBusReceiverClient receiver = client.session("s111", "x");
        long begin = System.nanoTime();
        ServiceBusReceivedMessage message = receiveOne(receiver);
        ServiceBusReceiverClient next = accepted(connect(), "s111", "x", Duration.ofSeconds(15));
        assertTrue(secondsSince(begin) >= 4);
        assertThrows(RuntimeException.class, () -> receiver.complete(message));
        fails(SESSION_LOCK_LOST, receiver::renewSessionLock);
        fails(SESSION_LOCK_LOST, receiver::getSessionState);
        ServiceBusReceivedMessage again = receiveOne(next);
        assertEquals("1", again.getBody().toString());
        assertEquals(1, again.getDeliveryCount());
    }

    @Test
    void s112_the_sdks_own_renewal_holds_a_session() {
        sendTo("s112", "x");
        ServiceBusReceiverClient receiver = client.keep(client.keep(
            client.sessionReceivers("s112").maxAutoLockRenewDuration(Duration.ofSeconds(30)).buildClient()).acceptNextSession());
        ServiceBusReceivedMessage message = receiveOne(receiver);
        receiveNothing(receiver, Duration.ofSeconds(8));
        fails(SESSION_CANNOT_BE_LOCKED, () -> connect().session("s112", "x"));
        receiver.complete(message);
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s113_a_session_that_is_closed_is_free_at_once_and_nothing_is_counted() {
        sendTo("s113", "x", "x", "x");
        ServiceBusReceiverClient receiver = client.session("s113", "x");
        receive(receiver, 2);
        receiver.close();
        List<ServiceBusReceivedMessage> again = receive(accepted(connect(), "s113", "x", AT_ONCE), 3);
        assertEquals(texts(1, 3), bodies(again));
        assertEquals(List.of(0L, 0L, 0L), counts(again));
    }

    @Test
    void s115_an_abandoned_message_comes_again_first() {
        sendTo("s115", "x", "x", "x");
        ServiceBusReceiverClient receiver = client.session("s115", "x");
        receiver.abandon(receiveOne(receiver));
        List<ServiceBusReceivedMessage> again = receive(receiver, 3);
        assertEquals(range(1, 3), numbers(again));
        assertEquals(List.of(1L, 0L, 0L), counts(again));
    }

    @Test
    void s116_a_processor_takes_ten_sessions_three_at_a_time_each_in_order() throws Exception {
        String[] names = new String[200];
        for (int index = 0; index < names.length; index += 1) {
            names[index] = "session-" + index % 10;
        }
        sendTo("s116", names);
        Map<String, Queue<Integer>> seen = new ConcurrentHashMap<>();
        Set<String> busy = ConcurrentHashMap.newKeySet();
        Queue<String> complaints = new ConcurrentLinkedQueue<>();
        CountDownLatch all = new CountDownLatch(200);
        ServiceBusProcessorClient processor = client.keep(client.builder().sessionProcessor().queueName("s116")
            .maxConcurrentSessions(3)
            .sessionIdleTimeout(Duration.ofSeconds(1))
            .processMessage(context -> {
                String id = context.getMessage().getSessionId();
                if (!busy.add(id) || busy.size() > 3) {
                    complaints.add(id + " while busy with " + busy);
                }
                seen.computeIfAbsent(id, each -> new ConcurrentLinkedQueue<>())
                    .add(Integer.valueOf(context.getMessage().getBody().toString()));
                busy.remove(id);
                all.countDown();
            })
            .processError(context -> complaints.add(String.valueOf(context.getException())))
            .buildProcessorClient());
        processor.start();
        assertTrue(all.await(40, TimeUnit.SECONDS), () -> all.getCount() + " did not come; " + complaints);
        processor.close();
        assertEquals(List.of(), List.copyOf(complaints));
        assertEquals(10, seen.size());
        seen.forEach((id, bodies) -> {
            int first = Integer.parseInt(id.substring("session-".length())) + 1;
            List<Integer> wanted = new ArrayList<>();
            for (int body = first; body <= 200; body += 10) {
                wanted.add(body);
            }
            assertEquals(wanted, List.copyOf(bodies), id);
        });
    }

    @Test
    void s117_what_comes_to_a_session_that_is_held_goes_to_its_holder() {
        ServiceBusReceiverClient receiver = client.session("s117", "x");
        receiveNothing(receiver, Duration.ofMillis(100));
        sendTo("s117", "x", "x", "x");
        noNextSession("s117", Duration.ofSeconds(3));
        assertEquals(Set.of("1", "2", "3"), Set.copyOf(bodies(receive(receiver, 3))));
    }

    @Test
    void s118_a_session_has_a_state_of_its_own() {
        ServiceBusReceiverClient x = client.session("s118", "x");
        ServiceBusReceiverClient y = client.session("s118", "y");
        assertNull(x.getSessionState());
        for (byte[] state : new byte[][] {{0, -1, 1}, {2}, {}, null, {3}}) {
            x.setSessionState(state);
            // Empty bytes take a state away, as null does.
            assertArrayEquals(state != null && state.length == 0 ? null : state, x.getSessionState());
            assertNull(y.getSessionState());
        }
    }

    @Test
    void s119_a_state_stays_without_messages_too() {
        for (byte[] state : List.of(new byte[] {1, 2, 3}, pattern(200 * 1024))) {
            ServiceBusReceiverClient receiver = accepted(connect(), "s119", "idle", AT_ONCE);
            receiver.setSessionState(state);
            receiver.close();
            ServiceBusReceiverClient again = accepted(connect(), "s119", "idle", AT_ONCE);
            assertArrayEquals(state, again.getSessionState());
            again.close();
        }
    }

    @Test
    void s124_deferred_messages_belong_to_their_session() {
        sendTo("s124", "x", "x", "x");
        ServiceBusReceiverClient first = client.session("s124", "x");
        List<ServiceBusReceivedMessage> messages = receive(first, 3);
        first.defer(messages.get(0));
        first.defer(messages.get(1));
        first.complete(messages.get(2));
        first.close();
        ServiceBusReceiverClient again = accepted(connect(), "s124", "x", AT_ONCE);
        receiveNothing(again);
        assertEquals(List.of(), bodies(client.session("s124", "y").receiveDeferredMessageBatch(List.of(1L))));
        List<ServiceBusReceivedMessage> deferred = again.receiveDeferredMessageBatch(List.of(1L, 2L)).stream().toList();
        assertEquals(List.of("1", "2"), bodies(deferred));
        for (ServiceBusReceivedMessage message : deferred) {
            assertEquals("x", message.getSessionId());
            assertEquals(ServiceBusMessageState.DEFERRED, message.getState());
            again.complete(message);
        }
        assertEquals(List.of(), peekAll(again));
    }

    @Test
    void s125_a_scheduled_message_comes_to_its_session_when_it_is_due() {
        ServiceBusSenderClient sender = client.sender("s125");
        long begin = System.nanoTime();
        OffsetDateTime time = in(Duration.ofSeconds(3));
        long due = sender.scheduleMessage(inSession("x", "due"), time);
        sender.cancelScheduledMessage(sender.scheduleMessage(inSession("x", "cancelled"), time));
        ServiceBusReceiverClient receiver = client.nextSession("s125");
        assertTrue(secondsSince(begin) >= 2);
        assertEquals("x", receiver.getSessionId());
        ServiceBusReceivedMessage message = receiveOne(receiver);
        assertEquals("due", message.getBody().toString());
        assertTrue(message.getSequenceNumber() > due);
        receiveNothing(receiver);
    }

    @Test
    void s126_a_peek_of_a_session_shows_its_messages_only() {
        sendTo("s126", "a", "b", "a", "b", "b");
        assertEquals(List.of("1", "3"), bodies(peekAll(client.session("s126", "a"))));
        assertEquals(texts(1, 5), bodies(peekAll(client.receiver("s126"))));
    }

    @Test
    void s127_a_message_without_a_session_is_refused() {
        ServiceBusSenderClient sender = client.sender("s127");
        refuses("The SessionId was not set on a message", () -> sender.sendMessage(message(1)));
        sender.sendMessage(inSession("x", "2"));
        List<ServiceBusReceivedMessage> messages = receive(client.session("s127", "x"), 1);
        assertEquals(List.of("2"), bodies(messages));
        assertEquals(List.of(1L), numbers(messages));
    }

    @Test
    void s128_a_receiver_without_a_session_is_refused() {
        ServiceBusReceiverClient receiver = client.receiver("s128");
        refuses("It is not possible for an entity that requires sessions to create a non-sessionful message receiver",
            () -> bodies(receiver.receiveMessages(1, DEADLINE)));
    }

    @Test
    void s129_there_are_no_sessions_on_a_queue_without_them() {
        String text = "A sessionful message receiver cannot be created on an entity that does not require sessions";
        refuses(text, () -> client.session("s129", "x"));
        refuses(text, () -> client.nextSession("s129"));
        sendTo("s129", "x");
        assertEquals("x", receiveOne(client.receiver("s129")).getSessionId());
    }

    @Test
    void s130_dead_letters_of_sessions_are_received_without_them() {
        sendTo("s130", "a", "b");
        for (String name : List.of("a", "b")) {
            ServiceBusReceiverClient receiver = client.session("s130", name);
            receiver.deadLetter(receiveOne(receiver), new DeadLetterOptions().setDeadLetterReason("why " + name));
        }
        ServiceBusReceiverClient dead = client.deadLetters("s130");
        List<ServiceBusReceivedMessage> letters = receive(dead, 2);
        assertEquals(List.of("a", "b"), letters.stream().map(ServiceBusReceivedMessage::getSessionId).toList());
        assertEquals(List.of("why a", "why b"),
            letters.stream().map(ServiceBusReceivedMessage::getDeadLetterReason).toList());
        assertEquals(range(1, 2), numbers(letters));
        completeAll(dead, letters);
        assertEquals(List.of(), peekAll(dead));
    }

    @Test
    void s131_one_delivery_too_many_and_the_session_goes_on() {
        sendTo("s131", "x", "x");
        ServiceBusReceiverClient receiver = client.session("s131", "x");
        for (long count = 0; count < 2; count += 1) {
            ServiceBusReceivedMessage message = receiveOne(receiver);
            assertEquals("1", message.getBody().toString());
            assertEquals(count, message.getDeliveryCount());
            receiver.abandon(message);
        }
        assertEquals(List.of("2"), bodies(receive(receiver, 1)));
        ServiceBusReceivedMessage letter = receiveOne(client.deadLetters("s131"));
        assertEquals("1", letter.getBody().toString());
        assertEquals("MaxDeliveryCountExceeded", letter.getDeadLetterReason());
    }

    @Test
    void s132_messages_of_a_session_are_received_and_deleted() {
        sendTo("s132", "x", "x", "x");
        ServiceBusReceiverClient receiver = client.keep(client.keep(client.sessionReceivers("s132")
            .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient()).acceptSession("x"));
        assertEquals(texts(1, 3), bodies(receive(receiver, 3)));
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s133_an_expired_message_is_no_reason_to_grant_a_session() {
        send("s133", inSession("x", "1").setTimeToLive(Duration.ofSeconds(1)));
        ServiceBusReceivedMessage letter = receiveOne(client.deadLetters("s133"));
        assertEquals("x", letter.getSessionId());
        assertEquals("TTLExpiredException", letter.getDeadLetterReason());
        noNextSession("s133", Duration.ofSeconds(3));
    }

    @Test
    void s134_what_was_prefetched_goes_back_with_its_session() {
        sendTo("s134", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x");
        ServiceBusReceiverClient receiver = client.keep(client.keep(
            client.sessionReceivers("s134").prefetchCount(10).buildClient()).acceptSession("x"));
        receiver.complete(receiveOne(receiver));
        receiver.close();
        List<ServiceBusReceivedMessage> rest = receive(accepted(connect(), "s134", "x", AT_ONCE), 9);
        assertEquals(texts(2, 10), bodies(rest));
        rest.forEach(message -> assertEquals(0, message.getDeliveryCount()));
    }

    @Test
    void s135_a_batch_may_go_to_several_sessions() {
        ServiceBusSenderClient sender = client.sender("s135");
        ServiceBusMessageBatch batch = sender.createMessageBatch();
        for (ServiceBusMessage each : List.of(inSession("a", "1"), inSession("b", "2"), inSession("a", "3"))) {
            assertTrue(batch.tryAddMessage(each));
        }
        sender.sendMessages(batch);
        assertEquals(List.of("1", "3"), bodies(receive(client.session("s135", "a"), 2)));
        assertEquals(List.of("2"), bodies(receive(client.session("s135", "b"), 1)));
    }

    @Test
    void s136_names_of_sessions_are_taken_as_they_are() {
        for (String name : List.of("x", "y".repeat(128), "with spaces / slashes and ü", "X")) {
            sendTo("s136", name);
            ServiceBusReceiverClient receiver = client.session("s136", name);
            assertEquals(name, receiver.getSessionId());
            assertEquals(name, receiveOne(receiver).getSessionId());
        }
    }
}

package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.DeferOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import org.junit.jupiter.api.Test;

class Transactions extends Scenarios {
    private static CompleteOptions completing(ServiceBusTransactionContext transaction) {
        return new CompleteOptions().setTransactionContext(transaction);
    }

    /**
     * Checks that messages are locked still, under the locks they were received with.
     *
     * <p>The SDK takes a message that was settled in a transaction for settled, whatever becomes of the transaction: it
     * cannot settle it again. It can renew its lock.
     */
    private static void areLockedStill(ServiceBusReceiverClient receiver, List<ServiceBusReceivedMessage> messages) {
        assertThrows(IllegalArgumentException.class, () -> receiver.complete(messages.get(0)));
        messages.forEach(each -> assertTrue(receiver.renewMessageLock(each).isAfter(each.getLockedUntil())));
        receiveNothing(receiver);
        assertTrue(numbers(peekAll(receiver)).containsAll(numbers(messages)));
    }

    @Test
    void s231_what_is_sent_in_a_transaction_arrives_when_it_is_committed() {
        ServiceBusSenderClient sender = client.sender("s231");
        ServiceBusReceiverClient receiver = client.receiver("s231");
        ServiceBusTransactionContext transaction = sender.createTransaction();
        sender.sendMessage(message("first"), transaction);
        sender.sendMessages(List.of(message("second")), transaction);
        sender.sendMessage(message("outside"));
        assertEquals(List.of("outside"), bodies(receive(receiver, 1)));
        receiveNothing(receiver);
        assertEquals(List.of("outside"), bodies(peekAll(receiver)));
        OffsetDateTime before = in(Duration.ZERO);
        sender.commitTransaction(transaction);
        List<ServiceBusReceivedMessage> messages = peekAll(receiver);
        assertEquals(List.of("outside", "first", "second"), bodies(messages));
        assertEquals(range(1, 3), numbers(messages));
        assertNear(messages.get(2).getEnqueuedTime(), before, Duration.ofMillis(500));
        receive(receiver, 2);
    }

    @Test
    void s232_what_is_sent_in_a_transaction_that_is_rolled_back_never_was() {
        ServiceBusSenderClient sender = client.sender("s232");
        ServiceBusTransactionContext transaction = sender.createTransaction();
        sender.sendMessages(numbered(2), transaction);
        sender.sendMessage(message(3), transaction);
        sender.rollbackTransaction(transaction);
        sender.sendMessage(message("outside"));
        ServiceBusReceiverClient receiver = client.receiver("s232");
        List<ServiceBusReceivedMessage> messages = receive(receiver, 1);
        assertEquals(List.of("outside"), bodies(messages));
        assertEquals(List.of(1L), numbers(messages));
        receiveNothing(receiver);
    }

    @Test
    void s233_a_completion_takes_effect_when_the_transaction_is_committed() {
        sendNumbered("s233", 1);
        ServiceBusReceiverClient receiver = client.receiver("s233");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        ServiceBusTransactionContext transaction = receiver.createTransaction();
        receiver.complete(message, completing(transaction));
        assertEquals(List.of("1"), bodies(peekAll(receiver)));
        receiveNothing(client.receiver("s233"));
        receiver.commitTransaction(transaction);
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s234_a_completion_that_is_rolled_back_leaves_the_lock() {
        sendNumbered("s234", 1);
        ServiceBusReceiverClient receiver = client.receiver("s234");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        ServiceBusTransactionContext transaction = receiver.createTransaction();
        receiver.complete(message, completing(transaction));
        receiver.rollbackTransaction(transaction);
        areLockedStill(receiver, List.of(message));
    }

    @Test
    void s235_every_settlement_takes_effect_with_the_commit_or_not_at_all() {
        sendNumbered("s235", 6);
        ServiceBusReceiverClient receiver = client.receiver("s235");
        List<ServiceBusReceivedMessage> messages = receive(receiver, 6);
        ServiceBusTransactionContext committed = receiver.createTransaction();
        settle(receiver, messages.subList(0, 3), committed);
        assertEquals(List.of(), peekAll(client.deadLetters("s235")));
        receiver.commitTransaction(committed);

        ServiceBusReceivedMessage abandoned = receiveOne(receiver);
        assertEquals("1", abandoned.getBody().toString());
        assertEquals(1, abandoned.getDeliveryCount());
        ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(messages.get(1).getSequenceNumber());
        assertEquals("2", deferred.getBody().toString());
        ServiceBusReceivedMessage dead = receiveOne(client.deadLetters("s235"));
        assertEquals("3", dead.getBody().toString());
        assertEquals("why", dead.getDeadLetterReason());

        ServiceBusTransactionContext rolledBack = receiver.createTransaction();
        settle(receiver, messages.subList(3, 6), rolledBack);
        receiver.rollbackTransaction(rolledBack);
        areLockedStill(receiver, messages.subList(3, 6));
        peekAll(receiver).stream().filter(each -> each.getSequenceNumber() > 3)
            .forEach(each -> assertEquals(ServiceBusMessageState.ACTIVE, each.getState()));
        assertEquals(1, peekAll(client.deadLetters("s235")).size());
    }

    private static void settle(ServiceBusReceiverClient receiver, List<ServiceBusReceivedMessage> three,
        ServiceBusTransactionContext transaction) {
        receiver.abandon(three.get(0), new AbandonOptions().setTransactionContext(transaction));
        receiver.defer(three.get(1), new DeferOptions().setTransactionContext(transaction));
        receiver.deadLetter(three.get(2),
            new DeadLetterOptions().setDeadLetterReason("why").setTransactionContext(transaction));
    }

    @Test
    void s236_a_message_is_completed_and_another_sent_or_neither() {
        refusesTwoEntities();
        moves(connect().crossEntity(), "s236", "s236b");
    }

    /** Without cross-entity transactions the coordinator has an AMQP session of its own. */
    private void refusesTwoEntities() {
        sendNumbered("s236", 1);
        ServiceBusReceiverClient receiver = client.receiver("s236");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        ServiceBusSenderClient sender = client.sender("s236b");
        ServiceBusTransactionContext transaction = receiver.createTransaction();
        sender.sendMessage(message("neither"), transaction);
        refuses("Local transactions cannot span multiple entities or partitions",
            () -> receiver.complete(message, completing(transaction)));
        refuses("amqp:transaction:rollback", () -> receiver.commitTransaction(transaction));
        assertEquals(List.of(), peekAll(client.receiver("s236b")));
        assertEquals(List.of("1"), bodies(peekAll(receiver)));
        receiver.complete(message);
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s248_a_transaction_spans_entities_where_the_client_says_so() {
        moves(connect().crossEntity(), "s248", "s248b");
    }

    /** Completes a message of one queue and sends one to another, in a transaction that ends well and in one that does not. */
    private void moves(Connection connection, String from, String to) {
        sendNumbered(from, 2);
        ServiceBusReceiverClient receiver = connection.receiver(from);
        List<ServiceBusReceivedMessage> messages = receive(receiver, 2);
        ServiceBusSenderClient sender = connection.sender(to);

        ServiceBusTransactionContext committed = receiver.createTransaction();
        sender.sendMessage(message("moved"), committed);
        receiver.complete(messages.get(0), completing(committed));
        receiver.commitTransaction(committed);
        ServiceBusTransactionContext rolledBack = sender.createTransaction();
        receiver.complete(messages.get(1), completing(rolledBack));
        sender.sendMessage(message("not moved"), rolledBack);
        sender.rollbackTransaction(rolledBack);

        ServiceBusReceiverClient there = client.receiver(to);
        assertEquals(List.of("moved"), bodies(receive(there, 1)));
        receiveNothing(there);
        assertEquals(List.of("2"), bodies(peekAll(receiver)));
        areLockedStill(receiver, messages.subList(1, 2));
    }

    @Test
    void s238_a_transaction_that_is_not_is_refused() {
        ServiceBusSenderClient sender = client.sender("s238");
        ServiceBusReceiverClient receiver = client.receiver("s238");
        sender.sendMessage(message("kept"));
        ServiceBusReceivedMessage kept = receiveOne(receiver);

        ServiceBusTransactionContext elsewhere = connect().sender("s238").createTransaction();
        ServiceBusTransactionContext done = sender.createTransaction();
        sender.sendMessage(message("committed"), done);
        sender.commitTransaction(done);
        for (ServiceBusTransactionContext transaction : List.of(elsewhere, done)) {
            // The SDK does not look at what becomes of a message that is sent in a transaction.
            sender.sendMessage(message("refused"), transaction);
            refuses("amqp:transaction:unknown-id", () -> receiver.complete(kept, completing(transaction)));
            refuses("amqp:transaction:unknown-id", () -> sender.commitTransaction(transaction));
            refuses("amqp:transaction:unknown-id", () -> sender.rollbackTransaction(transaction));
        }
        assertEquals(List.of("kept", "committed"), bodies(peekAll(receiver)));
        // All links live on.
        ServiceBusTransactionContext next = sender.createTransaction();
        sender.sendMessage(message("next"), next);
        sender.commitTransaction(next);
        assertEquals(List.of("committed", "next"), bodies(receive(receiver, 2)));
    }

    @Test
    void s239_a_transaction_has_a_hundred_messages_and_no_more() {
        ServiceBusSenderClient sender = client.sender("s239");
        ServiceBusTransactionContext transaction = sender.createTransaction();
        // The SDK does not see that the last one is refused: the commit has to fail.
        numbered(101).forEach(message -> sender.sendMessage(message, transaction));
        refuses("amqp:transaction:rollback", () -> sender.commitTransaction(transaction));
        ServiceBusReceiverClient receiver = client.receiver("s239");
        assertEquals(List.of(), peekAll(receiver));
        ServiceBusTransactionContext again = sender.createTransaction();
        numbered(100).forEach(message -> sender.sendMessage(message, again));
        sender.commitTransaction(again);
        List<ServiceBusReceivedMessage> messages = receive(receiver, 100);
        assertEquals(texts(1, 100), bodies(messages));
        assertEquals(range(1, 100), numbers(messages));
    }

    @Test
    void s240_schedules_and_settlements_by_lock_token_take_part() {
        ServiceBusSenderClient sender = client.sender("s240");
        ServiceBusReceiverClient receiver = client.receiver("s240");
        sender.sendMessages(numbered(2));
        receive(receiver, 2).forEach(receiver::defer);
        OffsetDateTime later = in(Duration.ofHours(1));

        ServiceBusTransactionContext rolledBack = sender.createTransaction();
        sender.scheduleMessage(message("not scheduled"), later, rolledBack);
        receiver.complete(receiver.receiveDeferredMessage(1), completing(rolledBack));
        sender.rollbackTransaction(rolledBack);
        assertEquals(List.of("1", "2"), bodies(peekAll(receiver)));

        ServiceBusTransactionContext committed = sender.createTransaction();
        sender.scheduleMessage(message("scheduled"), later, committed);
        sender.scheduleMessage(message("scheduled too"), later, committed);
        receiver.complete(receiver.receiveDeferredMessage(2), completing(committed));
        assertEquals(List.of("1", "2"), bodies(peekAll(receiver)));
        sender.commitTransaction(committed);
        List<ServiceBusReceivedMessage> seen = peekAll(receiver);
        assertEquals(List.of("1", "scheduled", "scheduled too"), bodies(seen));
        assertEquals(ServiceBusMessageState.SCHEDULED, seen.get(2).getState());
        // The other one is locked by what was rolled back.
        assertEquals(List.of(), bodies(receiver.receiveDeferredMessageBatch(List.of(1L))));
    }

    @Test
    void s241_a_transaction_may_mix_sessions() {
        ServiceBusSenderClient sender = client.sender("s241");
        sender.sendMessage(inSession("x", "x1"));
        ServiceBusReceiverClient x = client.session("s241", "x");
        ServiceBusReceivedMessage first = receiveOne(x);
        ServiceBusTransactionContext transaction = x.createTransaction();
        x.complete(first, completing(transaction));
        sender.sendMessage(inSession("y", "y1"), transaction);
        sender.sendMessage(inSession("x", "x2"), transaction);
        sender.sendMessage(inSession("y", "y2"), transaction);
        receiveNothing(x);
        x.commitTransaction(transaction);
        assertEquals(List.of("x2"), bodies(receive(x, 1)));
        assertEquals(List.of("y1", "y2"), bodies(receive(client.session("s241", "y"), 2)));
        assertEquals(List.of("x2"), bodies(peekAll(x)));
    }

    @Test
    void s242_a_transaction_sends_to_topics_and_queues() {
        Connection spanning = connect().crossEntity();
        ServiceBusSenderClient topic = spanning.topicSender("s242");
        ServiceBusSenderClient queue = spanning.sender("s242b");
        for (boolean isCommit : new boolean[] {false, true}) {
            ServiceBusTransactionContext transaction = topic.createTransaction();
            topic.sendMessage(with("n", 1), transaction);
            queue.sendMessage(message("queued"), transaction);
            topic.sendMessage(with("n", 2), transaction);
            if (isCommit) {
                topic.commitTransaction(transaction);
            } else {
                topic.rollbackTransaction(transaction);
            }
        }
        for (String[] wanted : new String[][] {{"s242/a", "1", "2"}, {"s242/b", "1"}, {"s242b", "queued"}}) {
            List<ServiceBusReceivedMessage> seen = peekAll(client.receiver(wanted[0]));
            assertEquals(List.of(wanted).subList(1, wanted.length), bodies(seen), wanted[0]);
            assertEquals(range(1, seen.size()), numbers(seen), wanted[0]);
        }
    }

    @Test
    void s245_a_lock_that_ends_within_a_transaction_spoils_it_or_does_not_matter() {
        sendNumbered("s245", 1);
        ServiceBusReceiverClient receiver = client.receiver("s245");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        ServiceBusTransactionContext transaction = receiver.createTransaction();
        receiver.complete(message, completing(transaction));
        receiveNothing(receiver, Duration.ofSeconds(1));
        ServiceBusReceiverClient other = client.receiver("s245");
        List<ServiceBusReceivedMessage> again = other.receiveMessages(1, Duration.ofSeconds(7)).stream().toList();
        boolean isCommitted = true;
        try {
            receiver.commitTransaction(transaction);
        } catch (RuntimeException error) {
            isCommitted = false;
        }
        if (isCommitted) {
            assertEquals(List.of(), bodies(again));
            assertEquals(List.of(), peekAll(other));
        } else {
            again = again.isEmpty() ? receive(other, 1) : again;
            assertEquals(List.of("1"), bodies(again));
            assertEquals(List.of(1L), counts(again));
            assertNotEquals(message.getLockToken(), again.get(0).getLockToken());
        }
    }

    @Test
    void s246_two_transactions_of_a_connection_know_nothing_of_each_other() {
        ServiceBusSenderClient sender = client.sender("s246");
        ServiceBusTransactionContext one = sender.createTransaction();
        ServiceBusTransactionContext other = sender.createTransaction();
        assertNotEquals(one.getTransactionId(), other.getTransactionId());
        for (int index = 1; index <= 3; index += 1) {
            sender.sendMessage(message("one " + index), one);
            sender.sendMessage(message("other " + index), other);
        }
        sender.rollbackTransaction(other);
        sender.commitTransaction(one);
        ServiceBusReceiverClient receiver = client.receiver("s246");
        assertEquals(List.of("one 1", "one 2", "one 3"), bodies(peekAll(receiver)));
        assertNotNull(receiver.peekMessage(3));
    }

    private static ServiceBusMessage keyed(String key, String body) {
        return message(body).setPartitionKey(key);
    }

    @Test
    void s230_a_transaction_has_one_partition() {
        ServiceBusSenderClient sender = client.sender("s230");
        for (ServiceBusMessage second : List.of(keyed("other", "second"), message("second"))) {
            ServiceBusTransactionContext transaction = sender.createTransaction();
            sender.sendMessage(keyed("one", "first"), transaction);
            // The SDK does not look at what becomes of a message that is sent in a transaction.
            sender.sendMessage(second, transaction);
            refuses("amqp:transaction:rollback", () -> sender.commitTransaction(transaction));
        }
        ServiceBusReceiverClient receiver = client.receiver("s230");
        assertEquals(List.of(), peekAll(receiver));
        ServiceBusTransactionContext transaction = sender.createTransaction();
        sender.sendMessage(keyed("one", "first"), transaction);
        sender.sendMessage(keyed("one", "second"), transaction);
        sender.commitTransaction(transaction);
        assertEquals(List.of("first", "second"), bodies(receive(receiver, 2)));
    }

    @Test
    void s250_what_is_scheduled_for_now_comes_in_its_turn() {
        ServiceBusSenderClient sender = client.sender("s250");
        ServiceBusTransactionContext transaction = sender.createTransaction();
        sender.sendMessage(message("sent"), transaction);
        sender.scheduleMessage(message("scheduled"), in(Duration.ZERO), transaction);
        sender.sendMessage(message("sent last"), transaction);
        sender.commitTransaction(transaction);
        assertEquals(List.of("sent", "scheduled", "sent last"), bodies(receive(client.receiver("s250"), 3)));
    }
}

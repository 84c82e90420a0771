package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Links, connections and networks that end while clients are at work. */
class Reconnecting extends Scenarios {
    /** Through the fault proxy; the SDK may try again as often as it does by itself. */
    private Connection through(FaultProxy proxy, AmqpRetryOptions retry) {
        Connection connection = connect(proxy.connectionString());
        connection.keep(proxy);
        connection.builder().retryOptions(retry);
        return connection;
    }

    private Connection through(FaultProxy proxy) {
        return through(proxy, new AmqpRetryOptions().setDelay(Duration.ofMillis(200)));
    }

    /** A sender and a receiver work, something happens to both, and they work again: with the same objects. */
    private void survives(String queue, Consumer<FaultProxy> happens) {
        FaultProxy proxy = new FaultProxy();
        Connection connection = through(proxy);
        ServiceBusSenderClient sender = connection.sender(queue);
        ServiceBusReceiverClient receiver = connection.receiver(queue);
        sender.sendMessage(message("before"));
        receiver.complete(receiveOne(receiver));
        happens.accept(proxy);
        sendInTime(sender, message("after"));
        ServiceBusReceivedMessage after = receiveOne(receiver);
        assertEquals("after", after.getBody().toString());
        receiver.complete(after);
        receiveNothing(receiver);
        assertEquals(List.of(), peekAll(client.receiver(queue)));
    }

    /** Until the SDK has noticed, a completion still goes to the broker, and its answer to nobody. */
    private static void untilItIsNoticed(ServiceBusReceiverClient receiver) {
        try {
            receiver.receiveMessages(1, Duration.ofSeconds(1)).forEach(message -> { });
        } catch (RuntimeException error) {
            // So it has.
            return;
        }
    }

    /** In the moment in which a link goes the SDK refuses to send at all; a little later it makes another. */
    static void sendInTime(ServiceBusSenderClient sender, ServiceBusMessage message) {
        long begin = System.nanoTime();
        while (true) {
            try {
                sender.sendMessage(message);
                return;
            } catch (ServiceBusException error) {
                assertTrue(error.getCause() instanceof IllegalStateException, error::toString);
                assertTrue(secondsSince(begin) < DEADLINE.toSeconds(), error::toString);
            }
        }
    }

    /** As soon as there is a link. */
    private static void detachOnce(FaultProxy proxy, String text) {
        long begin = System.nanoTime();
        while (proxy.detach(text) < 1) {
            assertTrue(secondsSince(begin) < DEADLINE.toSeconds(), "no link");
        }
    }

    @Test
    void s301_a_sender_and_a_receiver_survive_a_forced_detach() {
        survives("s301", proxy -> assertTrue(proxy.detach("s301") >= 2));
    }

    @Test
    void s302_a_waiting_receive_survives_a_forced_detach() throws Exception {
        FaultProxy proxy = new FaultProxy();
        ServiceBusReceiverClient receiver = through(proxy).receiver("s302");
        receiveNothing(receiver, Duration.ofMillis(100));
        CompletableFuture<List<String>> receiving =
            aside(() -> bodies(receiver.receiveMessages(1, Duration.ofSeconds(15))));
        detachOnce(proxy, "s302");
        client.sender("s302").sendMessage(message("now"));
        long sent = System.nanoTime();
        List<String> bodies = new ArrayList<>(within(DEADLINE, receiving));
        if (bodies.isEmpty()) {
            bodies.addAll(bodies(receiver.receiveMessages(1, Duration.ofSeconds(15))));
        }
        assertEquals(List.of("now"), bodies);
        assertTrue(secondsSince(sent) < 15, () -> secondsSince(sent) + " s");
    }

    @Test
    void s303_a_message_is_completed_after_a_forced_detach_or_comes_again() {
        send("s303", message(1));
        FaultProxy proxy = new FaultProxy();
        ServiceBusReceiverClient receiver = through(proxy).receiver("s303");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        assertTrue(proxy.detach("s303") >= 1);
        untilItIsNoticed(receiver);
        boolean isCompleted = true;
        try {
            receiver.complete(message);
        } catch (RuntimeException error) {
            isCompleted = false;
        }
        ServiceBusReceiverClient other = client.receiver("s303");
        if (isCompleted) {
            receiveNothing(other, Duration.ofSeconds(12));
        } else {
            ServiceBusReceivedMessage again = receiveOne(other);
            // The SDK settles what it had of a link that is gone, without an outcome: that is no delivery.
            assertTrue(again.getDeliveryCount() <= 1);
            other.complete(again);
        }
        assertEquals(List.of(), peekAll(other));
    }

    @Test
    void s304_a_forced_detach_ends_a_session() {
        send("s304", inSession("x", "1"), inSession("x", "2"));
        FaultProxy proxy = new FaultProxy();
        ServiceBusReceiverClient receiver = through(proxy).session("s304", "x");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        assertTrue(proxy.detach("s304") >= 1);
        untilItIsNoticed(receiver);
        assertThrows(RuntimeException.class, () -> receiver.complete(message));
        assertThrows(RuntimeException.class, receiver::getSessionState);
        long begin = System.nanoTime();
        ServiceBusReceiverClient next = client.session("s304", "x");
        assertTrue(secondsSince(begin) < 5);
        assertEquals(texts(1, 2), bodies(receive(next, 2)));
    }

    @Test
    void s305_a_sender_and_a_receiver_survive_a_closed_connection() {
        survives("s305", proxy -> assertTrue(proxy.closeAll() >= 1));
    }

    @Test
    void s306_a_sender_and_a_receiver_survive_a_connection_that_is_reset() {
        survives("s306", proxy -> assertTrue(proxy.cut() >= 1));
    }

    @Test
    void s307_a_send_without_an_answer_times_out() {
        FaultProxy proxy = new FaultProxy();
        AmqpRetryOptions once = new AmqpRetryOptions()
            .setMaxRetries(1).setDelay(Duration.ofMillis(200)).setTryTimeout(Duration.ofSeconds(3));
        ServiceBusSenderClient sender = through(proxy, once).sender("s307");
        sender.sendMessage(message("before"));
        proxy.hold();
        long begin = System.nanoTime();
        Throwable failure = assertThrows(RuntimeException.class, () -> sender.sendMessage(message("lost")));
        assertTrue(secondsSince(begin) < 15, () -> secondsSince(begin) + " s");
        isTimeout(failure);
        proxy.release();
        sender.sendMessage(message("after"));
        List<String> there = bodies(peekAll(client.receiver("s307")));
        assertTrue(there.equals(List.of("before", "after")) || there.equals(List.of("before", "lost", "after")),
            there::toString);
    }

    /** The SDK's own reason, the condition, or the end of what its blocking client waits for. */
    private static void isTimeout(Throwable failure) {
        boolean isReason = failure.getCause() instanceof TimeoutException || failure instanceof ServiceBusException found
            && found.getReason() == ServiceBusFailureReason.SERVICE_TIMEOUT;
        assertTrue(isReason || conditions(failure).contains(AmqpErrorCondition.TIMEOUT_ERROR),
            () -> failure + " <- " + failure.getCause());
    }

    /** A processor goes on by itself. */
    @Test
    @Timeout(60)
    void s317_a_processor_survives() throws Exception {
        FaultProxy proxy = new FaultProxy();
        Connection connection = through(proxy);
        Work work = new Work();
        connection.keep(connection.builder().processor().queueName("s317")
            .processMessage(work::take).processError(work::failed).buildProcessorClient()).start();
        ServiceBusSenderClient sender = client.sender("s317");
        sender.sendMessage(message(1));
        work.await(1, DEADLINE);
        untilAllIsDone("s317");
        assertTrue(proxy.detach("s317") >= 1);
        sender.sendMessage(message(2));
        work.awaitDifferent(2, Duration.ofSeconds(15));
        untilAllIsDone("s317");
        assertTrue(proxy.cut() >= 1);
        sender.sendMessage(message(3));
        work.awaitDifferent(3, Duration.ofSeconds(15));
        assertEquals(texts(1, 3), work.bodies().stream().distinct().sorted().toList());
    }

    /** Waits until a queue is empty: what is settled in the moment in which a link goes makes the SDK wait for a minute. */
    private void untilAllIsDone(String queue) throws InterruptedException {
        ServiceBusReceiverClient receiver = client.receiver(queue);
        long begin = System.nanoTime();
        while (!peekAll(receiver).isEmpty()) {
            assertTrue(secondsSince(begin) < 20, "there is something left in " + queue);
            Thread.sleep(50);
        }
    }
}

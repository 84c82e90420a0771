package interop;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusErrorContext;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessageContext;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** What a processor has been given, and was told of. */
final class Work {
    private final List<ServiceBusReceivedMessage> messages = new ArrayList<>();
    private final List<Throwable> errors = new ArrayList<>();
    private int busy;
    private int mostBusy;

    void take(ServiceBusReceivedMessageContext context) {
        add(context.getMessage());
    }

    synchronized void add(ServiceBusReceivedMessage message) {
        messages.add(message);
        notifyAll();
    }

    synchronized void failed(ServiceBusErrorContext context) {
        errors.add(context.getException());
        notifyAll();
    }

    /** Counts those at work, and waits until there are so many, or for a time. */
    synchronized void workTogether(int count, Duration atMost) throws InterruptedException {
        busy += 1;
        mostBusy = Math.max(mostBusy, busy);
        notifyAll();
        long end = System.nanoTime() + atMost.toNanos();
        while (busy < count && mostBusy < count && System.nanoTime() < end) {
            wait(Math.max(1, (end - System.nanoTime()) / 1_000_000));
        }
    }

    synchronized void workIsDone() {
        busy -= 1;
    }

    synchronized int mostAtOnce() {
        return mostBusy;
    }

    /** Waits until so many different messages have come. */
    synchronized void awaitDifferent(int count, Duration deadline) throws InterruptedException {
        long end = System.nanoTime() + deadline.toNanos();
        while (bodies().stream().distinct().count() < count) {
            long remaining = (end - System.nanoTime()) / 1_000_000;
            assertTrue(remaining > 0, () -> bodies() + ", not " + count + " messages, " + errors);
            wait(remaining);
        }
    }

    /** Waits until so many messages have come. */
    synchronized void await(int count, Duration deadline) throws InterruptedException {
        long end = System.nanoTime() + deadline.toNanos();
        while (messages.size() < count) {
            long remaining = (end - System.nanoTime()) / 1_000_000;
            assertTrue(remaining > 0, () -> messages.size() + " of " + count + " messages, " + errors);
            wait(remaining);
        }
    }

    synchronized List<String> bodies() {
        return Scenarios.bodies(messages);
    }

    synchronized List<ServiceBusReceivedMessage> messages() {
        return List.copyOf(messages);
    }

    synchronized List<Throwable> errors() {
        return List.copyOf(errors);
    }
}

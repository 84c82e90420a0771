package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusProcessorClient;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class Processing extends Scenarios {
    private static void becomesEmpty(ServiceBusReceiverClient looking) {
        long begin = System.nanoTime();
        while (!peekAll(looking).isEmpty()) {
            assertTrue(secondsSince(begin) < DEADLINE.toSeconds(), "messages that are not completed");
        }
    }

    @Test
    void s314_a_processor_makes_as_many_calls_at_once_as_it_may() throws Exception {
        sendNumbered("s314", 40);
        Work work = new Work();
        ServiceBusProcessorClient processor = client.keep(client.builder().processor().queueName("s314")
            .maxConcurrentCalls(4)
            .processMessage(context -> {
                try {
                    work.workTogether(4, Duration.ofSeconds(5));
                    work.workIsDone();
                } catch (InterruptedException error) {
                    throw new IllegalStateException(error);
                }
                work.take(context);
            })
            .processError(work::failed).buildProcessorClient());
        processor.start();
        work.await(40, DEADLINE);
        becomesEmpty(client.receiver("s314"));
        processor.close();
        assertEquals(4, work.mostAtOnce());
        assertEquals(texts(1, 40), work.bodies().stream().map(Integer::valueOf).sorted().map(String::valueOf).toList());
        assertEquals(List.of(), work.errors());
    }

    @Test
    void s315_what_a_callback_always_fails_for_is_a_dead_letter() throws Exception {
        Work work = new Work();
        List<Long> counts = new ArrayList<>();
        ServiceBusProcessorClient processor = client.keep(client.builder().processor().queueName("s315")
            .processMessage(context -> {
                ServiceBusReceivedMessage message = context.getMessage();
                if (message.getBody().toString().equals("2")) {
                    counts.add(message.getDeliveryCount());
                    throw new IllegalStateException("never that one");
                }
                work.take(context);
            })
            .processError(work::failed).buildProcessorClient());
        processor.start();
        sendNumbered("s315", 3);
        work.await(2, DEADLINE);
        ServiceBusReceiverClient dead = client.deadLetters("s315");
        ServiceBusReceivedMessage letter = receiveOne(dead);
        assertEquals("2", letter.getBody().toString());
        assertEquals("MaxDeliveryCountExceeded", letter.getDeadLetterReason());
        dead.complete(letter);
        // It goes on.
        send("s315", message(4));
        work.await(3, DEADLINE);
        becomesEmpty(client.receiver("s315"));
        processor.close();
        assertEquals(range(0, 2), counts);
        assertEquals(List.of("1", "3", "4"), work.bodies());
        assertTrue(work.errors().stream().anyMatch(error -> String.valueOf(error.getMessage()).contains("never that one")
            || String.valueOf(error.getCause()).contains("never that one")), () -> work.errors().toString());
    }

    @Test
    void s316_a_session_processor_has_several_sessions_at_once() throws Exception {
        List<ServiceBusMessage> messages = IntStream.rangeClosed(1, 5).boxed()
            .flatMap(n -> IntStream.rangeClosed(1, 6).mapToObj(each -> inSession("session " + each, each + " " + n)))
            .toList();
        client.sender("s316").sendMessages(messages);
        Work work = new Work();
        ServiceBusProcessorClient processor = client.keep(client.builder().sessionProcessor().queueName("s316")
            .maxConcurrentSessions(3).sessionIdleTimeout(Duration.ofSeconds(1))
            .processMessage(context -> {
                try {
                    work.workTogether(3, Duration.ofSeconds(5));
                    work.workIsDone();
                } catch (InterruptedException error) {
                    throw new IllegalStateException(error);
                }
                work.take(context);
            })
            .processError(work::failed).buildProcessorClient());
        processor.start();
        work.await(30, DEADLINE);
        send("s316", inSession("session 7", "7 1"));
        work.await(31, DEADLINE);
        processor.close();
        assertEquals(3, work.mostAtOnce());
        for (int each = 1; each <= 6; each += 1) {
            String session = each + " ";
            assertEquals(IntStream.rangeClosed(1, 5).mapToObj(n -> session + n).toList(),
                work.bodies().stream().filter(body -> body.startsWith(session)).toList());
        }
        assertEquals(31, work.bodies().size());
    }

    @Test
    void s318_a_processor_holds_the_lock_while_its_callback_works() throws Exception {
        send("s318", message(1));
        Work work = new Work();
        ServiceBusReceiverClient other = client.receiver("s318");
        ServiceBusProcessorClient processor = client.keep(connect().builder().processor().queueName("s318")
            .maxAutoLockRenewDuration(Duration.ofMinutes(1))
            .processMessage(context -> {
                work.take(context);
                // Nobody else gets it for the 8 seconds that the work takes.
                receiveNothing(other, Duration.ofSeconds(8));
            })
            .processError(work::failed).buildProcessorClient());
        processor.start();
        work.await(1, DEADLINE);
        becomesEmpty(client.receiver("s318"));
        processor.close();
        assertEquals(List.of("1"), work.bodies());
        assertEquals(List.of(), work.errors());
        assertFalse(other.receiveMessages(1, Duration.ofSeconds(1)).stream().findAny().isPresent());
    }
}

package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusProcessorClient;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class Receiving extends Scenarios {
    @Test
    void s18_a_locked_message_is_nobody_elses() {
        sendNumbered("s18", 1);
        ServiceBusReceiverClient receiver = client.receiver("s18");
        ServiceBusReceiverClient other = client.receiver("s18");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        receiveNothing(other);
        receiver.complete(message);
        receiveNothing(other);
    }

    @Test
    void s19_receive_and_delete_leaves_nothing_behind() {
        sendNumbered("s19", 3);
        ServiceBusReceiverClient receiver = client.deleting("s19");
        assertEquals(texts(1, 3), bodies(receive(receiver, 3)));
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s31_what_a_closed_receiver_held_comes_back_when_its_lock_ends() throws Exception {
        sendNumbered("s31", 3);
        Connection other = connect();
        receiveOne(other.receiver("s31"));
        other.close();
        ServiceBusReceiverClient receiver = client.receiver("s31");
        List<ServiceBusReceivedMessage> rest = receive(receiver, 2, Duration.ofSeconds(3));
        assertEquals(List.of("2", "3"), bodies(rest));
        completeAll(receiver, rest);
        ServiceBusReceivedMessage held = receiveOne(receiver, Duration.ofSeconds(15));
        assertEquals("1", held.getBody().toString());
        assertEquals(1, held.getDeliveryCount());
    }

    @Test
    void s33_a_receive_on_an_empty_queue_waits_and_the_next_one_works() {
        ServiceBusReceiverClient receiver = client.receiver("s33");
        // The first receive opens the link as well.
        receiveNothing(receiver, Duration.ofMillis(100));
        long begin = System.nanoTime();
        receiveNothing(receiver, Duration.ofSeconds(2));
        double waited = secondsSince(begin);
        assertTrue(1.9 <= waited && waited <= 5, () -> waited + " s");
        send("s33", message("late"));
        ServiceBusReceivedMessage late = receiveOne(receiver);
        assertEquals("late", late.getBody().toString());
        receiver.complete(late);
    }

    @Test
    void s34_a_waiting_receive_gets_what_is_sent() throws Exception {
        ServiceBusReceiverClient receiver = client.receiver("s34");
        receiveNothing(receiver, Duration.ofMillis(100));
        CompletableFuture<List<String>> receiving =
            aside(() -> bodies(receiver.receiveMessages(1, Duration.ofSeconds(15))));
        connect().sender("s34").sendMessage(message("now"));
        assertEquals(List.of("now"), within(Duration.ofSeconds(2), receiving));
    }

    @Test
    void s35_two_processors_share_200_messages() throws Exception {
        sendNumbered("s35", 200);
        Queue<String> seen = new ConcurrentLinkedQueue<>();
        Queue<Throwable> errors = new ConcurrentLinkedQueue<>();
        CountDownLatch all = new CountDownLatch(200);
        List<ServiceBusProcessorClient> processors = new ArrayList<>();
        for (int each = 0; each < 2; each += 1) {
            Connection connection = connect();
            ServiceBusProcessorClient processor = connection.keep(connection.builder().processor().queueName("s35")
                .maxConcurrentCalls(5)
                .processMessage(context -> {
                    seen.add(context.getMessage().getBody().toString());
                    all.countDown();
                })
                .processError(context -> errors.add(context.getException()))
                .buildProcessorClient());
            processor.start();
            processors.add(processor);
        }
        assertTrue(all.await(DEADLINE.toSeconds(), TimeUnit.SECONDS), () -> all.getCount() + " did not come, " + errors);
        // Handlers complete what they were given; then nothing is there.
        ServiceBusReceiverClient looking = client.receiver("s35");
        long begin = System.nanoTime();
        while (looking.peekMessage(1) != null) {
            assertTrue(secondsSince(begin) < DEADLINE.toSeconds(), "messages that are not completed");
        }
        processors.forEach(ServiceBusProcessorClient::close);
        assertEquals(texts(1, 200), seen.stream().map(Integer::valueOf).sorted().map(String::valueOf).toList());
        assertEquals(List.of(), List.copyOf(errors));
    }

    @Test
    void s36_a_receive_brings_no_more_than_it_asked_for() {
        sendNumbered("s36", 10);
        ServiceBusReceiverClient receiver = client.receiver("s36");
        List<ServiceBusReceivedMessage> messages =
            new ArrayList<>(receiver.receiveMessages(4, Duration.ofSeconds(5)).stream().toList());
        assertTrue(!messages.isEmpty() && messages.size() <= 4);
        messages.addAll(receive(receiver, 10 - messages.size()));
        assertEquals(range(1, 10), numbers(messages));
    }

    @Test
    void s38_dead_letters_are_peeked_completed_abandoned_and_deferred() {
        ServiceBusSenderClient sender = client.sender("s38");
        sender.sendMessages(numbered(3));
        ServiceBusReceiverClient receiver = client.receiver("s38");
        receive(receiver, 3).forEach(receiver::deadLetter);
        ServiceBusReceiverClient dead = client.deadLetters("s38");
        assertEquals(texts(1, 3), bodies(peekAll(dead)));
        List<ServiceBusReceivedMessage> letters = receive(dead, 3);
        dead.complete(letters.get(0));
        dead.abandon(letters.get(1));
        dead.defer(letters.get(2));
        ServiceBusReceivedMessage again = receiveOne(dead);
        assertEquals("2", again.getBody().toString());
        assertEquals("3", dead.receiveDeferredMessage(letters.get(2).getSequenceNumber()).getBody().toString());
        assertEquals(List.of("2", "3"), bodies(peekAll(dead)));
    }

    @Test
    void s39_nothing_is_sent_to_a_dead_letter_queue() {
        refuses("", () -> client.sender("s39/$DeadLetterQueue").sendMessage(message(1)));
    }

    @Test
    void s40_dead_letters_neither_expire_nor_are_dead_lettered() {
        send("s40", message(1));
        ServiceBusReceiverClient receiver = client.receiver("s40");
        receiver.deadLetter(receiveOne(receiver));
        ServiceBusReceiverClient dead = client.deadLetters("s40");
        ServiceBusReceivedMessage letter = receiveOne(dead);
        receiveNothing(client.receiver("s40"), Duration.ofSeconds(4));
        for (int count = 0; count < 12; count += 1) {
            dead.abandon(letter);
            letter = receiveOne(dead);
        }
        dead.complete(letter);
        assertEquals(List.of(), peekAll(dead));
    }
}

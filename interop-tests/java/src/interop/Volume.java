package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED;
import static com.azure.messaging.servicebus.ServiceBusFailureReason.QUOTA_EXCEEDED;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.util.BinaryData;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Much at once. */
class Volume extends Scenarios {
    /** By the asynchronous client: a blocking receive may end before all have come, and locks what comes after it. */
    @Test
    void s309_a_thousand_unsettled_on_one_link() throws Exception {
        sendNumbered("s309", 1000);
        ServiceBusReceiverAsyncClient receiver = client.keep(client.receivers("s309").disableAutoComplete()
            .prefetchCount(100).buildAsyncClient());
        List<ServiceBusReceivedMessage> messages = Collections.synchronizedList(new ArrayList<>());
        AtomicInteger completed = new AtomicInteger();
        // The stream, and with it the link, is open until the last of them is completed.
        CompletableFuture<Boolean> all = receiver.receiveMessages().concatMap(message -> {
            messages.add(message);
            if (messages.size() < 1000) {
                return Mono.empty();
            }
            List<ServiceBusReceivedMessage> shuffled = new ArrayList<>(messages);
            Collections.shuffle(shuffled, new Random(309));
            return Flux.fromIterable(shuffled)
                .concatMap(each -> receiver.complete(each).doOnSuccess(done -> completed.incrementAndGet()))
                .then(Mono.just(true));
        }).next().toFuture();
        try {
            all.get(60, TimeUnit.SECONDS);
        } catch (TimeoutException error) {
            throw new AssertionError(messages.size() + " came, " + completed + " are completed", error);
        }
        assertEquals(range(1, 1000), numbers(messages));
        assertEquals(List.of(), peekAll(client.receiver("s309")));
    }

    @Test
    void s310_a_batch_is_filled_until_the_sdk_says_that_it_is_full() {
        ServiceBusSenderClient sender = client.sender("s310");
        ServiceBusReceiverClient receiver = client.receiver("s310");
        int before = 0;
        for (int size : new int[] {1000, 10}) {
            ServiceBusMessageBatch batch = sender.createMessageBatch();
            int count = 0;
            // The service has a bound of its own for the number of messages, which this SDK does not know.
            while (count < 4500 && batch.tryAddMessage(numbered(count + 1, size))) {
                count += 1;
            }
            assertTrue(size < 1000 || count >= 800, "only " + count);
            sender.sendMessages(batch);
            List<String> sent = IntStream.rangeClosed(1, count)
                .mapToObj(number -> numbered(number, size).getBody().toString()).toList();
            List<String> there = bodies(peekAll(receiver));
            assertEquals(sent, there.subList(before, there.size()));
            before = there.size();
        }
    }

    private static ServiceBusMessage numbered(int number, int size) {
        return message(String.format("%0" + size + "d", number));
    }

    @Test
    void s311_messages_up_to_the_largest() {
        ServiceBusSenderClient sender = client.sender("s311");
        ServiceBusReceiverClient receiver = client.deleting("s311");
        sender.sendMessage(ofSize(1_000_000));
        assertArrayEquals(pattern(1_000_000), receiveOne(receiver).getBody().toBytes());
        ServiceBusMessageBatch batch = sender.createMessageBatch();
        assertTrue(batch.tryAddMessage(ofSize(1_000_000)));
        sender.sendMessages(batch);
        assertArrayEquals(pattern(1_000_000), receiveOne(receiver).getBody().toBytes());
        // Not even an empty batch has room: that is an error to this SDK.
        fails(MESSAGE_SIZE_EXCEEDED, () -> sender.createMessageBatch().tryAddMessage(ofSize(1_100_000)));
        fails(MESSAGE_SIZE_EXCEEDED, () -> sender.sendMessage(ofSize(1_100_000)));
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s312_a_message_of_20_mebibytes() {
        byte[] body = pattern(20 << 20);
        client.sender("s312").sendMessage(new ServiceBusMessage(BinaryData.fromBytes(body)));
        assertArrayEquals(body, receiveOne(client.deleting("s312")).getBody().toBytes());
    }

    @Test
    void s330_a_full_queue_takes_a_batch_whole_or_not_at_all() {
        ServiceBusSenderClient sender = client.sender("s330");
        int accepted = 0;
        Throwable failure = null;
        for (int batch = 0; batch < 30 && failure == null; batch += 1) {
            try {
                sender.sendMessages(List.of(ofSize(100 * 1024), ofSize(100 * 1024), ofSize(100 * 1024)));
                accepted += 3;
            } catch (RuntimeException error) {
                failure = error;
            }
        }
        Throwable refusal = failure;
        fails(QUOTA_EXCEEDED, () -> {
            throw refusal;
        });
        int scheduled = 0;
        failure = null;
        for (int each = 0; each < 30 && failure == null; each += 1) {
            try {
                sender.scheduleMessage(ofSize(100 * 1024), in(Duration.ofHours(1)));
                scheduled += 1;
            } catch (RuntimeException error) {
                failure = error;
            }
        }
        Throwable other = failure;
        fails(QUOTA_EXCEEDED, () -> {
            throw other;
        });
        assertEquals(accepted + scheduled, peekAll(client.receiver("s330")).size());
    }
}

package interop;

import static java.util.stream.Collectors.groupingBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class Partitions extends Scenarios {
    /** The partition of a message is the topmost 16 bits of its number. */
    private static long partition(ServiceBusReceivedMessage message) {
        return message.getSequenceNumber() >>> 48;
    }

    /** Checks that messages are of one partition, with consecutive numbers in it. */
    private static long onePartition(List<ServiceBusReceivedMessage> messages) {
        List<Long> numbers = numbers(messages);
        assertEquals(range(numbers.get(0), numbers.get(0) + numbers.size() - 1), numbers);
        long partition = partition(messages.get(0));
        assertTrue(0 <= partition && partition <= 15, () -> "partition " + partition);
        return partition;
    }

    private static ServiceBusMessage keyed(String key, int body) {
        return message(body).setPartitionKey(key);
    }

    /** Checks ten messages of the keys j and k, that were sent in turn. */
    private static void keysAreInOrder(List<ServiceBusReceivedMessage> messages) {
        Map<String, List<ServiceBusReceivedMessage>> byKey =
            messages.stream().collect(groupingBy(ServiceBusReceivedMessage::getPartitionKey));
        assertEquals(List.of("1", "3", "5", "7", "9"), bodies(byKey.get("j")));
        assertEquals(List.of("2", "4", "6", "8", "10"), bodies(byKey.get("k")));
        Set<Long> ordinals = new TreeSet<>();
        messages.forEach(message -> ordinals.add(message.getSequenceNumber() & (1L << 48) - 1));
        boolean isShared = partition(byKey.get("j").get(0)) == partition(byKey.get("k").get(0));
        assertEquals(Set.copyOf(range(1, isShared ? 10 : 5)), ordinals);
    }

    @Test
    void s211_a_partition_key_is_one_partition_in_order() {
        ServiceBusSenderClient sender = client.sender("s211");
        for (int body = 1; body <= 10; body += 1) {
            sender.sendMessage(keyed(body % 2 == 1 ? "j" : "k", body));
        }
        keysAreInOrder(receive(client.receiver("s211"), 10));
    }

    @Test
    void s212_a_session_is_one_partition() {
        ServiceBusSenderClient sender = client.sender("s212");
        for (int body = 1; body <= 15; body += 1) {
            sender.sendMessage(inSession("session-" + body % 5, String.valueOf(body)));
        }
        Set<Long> partitions = new TreeSet<>();
        for (int each = 1; each <= 5; each += 1) {
            List<ServiceBusReceivedMessage> messages = receive(client.session("s212", "session-" + each % 5), 3);
            assertEquals(List.of(each, each + 5, each + 10).stream().map(String::valueOf).toList(), bodies(messages));
            messages.forEach(message -> partitions.add(partition(message)));
        }
        assertTrue(partitions.size() > 1 && partitions.size() <= 5, partitions::toString);
        // The SDK sees that before the broker does.
        assertThrows(IllegalArgumentException.class, () -> inSession("x", "1").setPartitionKey("y"));
    }

    @Test
    void s213_a_message_is_found_by_its_number_in_whichever_partition() {
        ServiceBusSenderClient sender = client.sender("s213");
        sender.sendMessages(numbered(50));
        for (int body = 51; body <= 100; body += 1) {
            sender.sendMessage(message(body));
        }
        ServiceBusReceiverClient receiver = client.receiver("s213");
        List<ServiceBusReceivedMessage> seen = peekAll(receiver);
        assertEquals(Set.copyOf(texts(1, 100)), Set.copyOf(bodies(seen)));
        assertEquals(100, seen.size());
        assertTrue(seen.stream().map(Partitions::partition).distinct().count() >= 2);
        ServiceBusReceivedMessage one = seen.get(60);
        assertEquals(one.getBody().toString(), receiver.peekMessage(one.getSequenceNumber()).getBody().toString());

        List<ServiceBusReceivedMessage> messages = receive(receiver, 100);
        List<ServiceBusReceivedMessage> deferred = messages.subList(0, 10);
        List<ServiceBusReceivedMessage> dead = messages.subList(10, 20);
        deferred.forEach(receiver::defer);
        dead.forEach(receiver::deadLetter);
        completeAll(receiver, messages.subList(20, 100));
        List<ServiceBusReceivedMessage> again =
            receiver.receiveDeferredMessageBatch(numbers(deferred)).stream().toList();
        assertEquals(Set.copyOf(numbers(deferred)), Set.copyOf(numbers(again)));
        completeAll(receiver, again);
        assertEquals(Set.copyOf(bodies(dead)), Set.copyOf(bodies(receive(client.deadLetters("s213"), 10))));

        List<Long> scheduled = new ArrayList<>();
        sender.scheduleMessages(numbered(10), in(Duration.ofHours(1))).forEach(scheduled::add);
        assertEquals(Set.copyOf(scheduled), Set.copyOf(numbers(peekAll(receiver))));
        sender.cancelScheduledMessages(scheduled);
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s214_a_duplicate_is_one_of_the_same_partition_key() {
        ServiceBusSenderClient sender = client.sender("s214");
        sender.sendMessage(message(1).setMessageId("1"));
        sender.sendMessage(message(2).setMessageId("1"));
        sender.sendMessage(keyed("k", 3).setMessageId("2"));
        sender.sendMessage(keyed("k", 4).setMessageId("2"));
        sender.sendMessage(keyed("j", 5).setMessageId("2"));
        assertEquals(Set.of("1", "3", "5"), Set.copyOf(bodies(peekAll(client.receiver("s214")))));
    }

    @Test
    void s215_a_batch_with_a_partition_key_is_in_one_partition() {
        ServiceBusSenderClient sender = client.sender("s215");
        ServiceBusMessageBatch batch = sender.createMessageBatch();
        for (int body = 1; body <= 10; body += 1) {
            assertTrue(batch.tryAddMessage(keyed("k", body)));
        }
        sender.sendMessages(batch);
        List<ServiceBusReceivedMessage> messages = receive(client.receiver("s215"), 10);
        assertEquals(texts(1, 10), bodies(messages));
        messages.forEach(message -> assertEquals("k", message.getPartitionKey()));
        onePartition(messages);
    }

    @Test
    void s216_subscriptions_of_a_partitioned_topic_are_partitioned() {
        ServiceBusSenderClient sender = client.topicSender("s216");
        for (int body = 1; body <= 10; body += 1) {
            sender.sendMessage(keyed(body % 2 == 1 ? "j" : "k", body));
        }
        keysAreInOrder(receive(client.receiver("s216/a"), 10));
    }
}

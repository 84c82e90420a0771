package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;

@Order(2)
class Duplicates extends Scenarios {
    private static ServiceBusMessage identified(String id, String body) {
        return message(body).setMessageId(id);
    }

    @Test
    void s181_a_duplicate_is_accepted_and_takes_no_number() {
        ServiceBusSenderClient sender = client.sender("s181");
        for (int body = 1; body <= 5; body += 1) {
            sender.sendMessage(identified("one", String.valueOf(body)));
        }
        sender.sendMessage(identified("other", "6"));
        List<ServiceBusReceivedMessage> messages = peekAll(client.receiver("s181"));
        assertEquals(List.of("1", "6"), bodies(messages));
        assertEquals(range(1, 2), numbers(messages));
    }

    @Test
    void s182_what_is_forgotten_is_no_duplicate() {
        ServiceBusSenderClient sender = client.sender("s182");
        ServiceBusReceiverClient receiver = client.receiver("s182");
        sender.sendMessage(identified("one", "1"));
        receiver.complete(receiveOne(receiver));
        sender.sendMessage(identified("one", "2"));
        receiveNothing(receiver, Duration.ofSeconds(22));
        sender.sendMessage(identified("one", "3"));
        assertEquals(List.of("3"), bodies(receive(receiver, 1)));
    }

    @Test
    void s183_duplicates_within_a_batch() {
        ServiceBusSenderClient sender = client.sender("s183");
        ServiceBusMessageBatch batch = sender.createMessageBatch();
        for (String[] each : new String[][] {{"1", "a"}, {"2", "b"}, {"1", "c"}, {"3", "d"}, {"3", "e"}}) {
            assertTrue(batch.tryAddMessage(identified(each[0], each[1])));
        }
        sender.sendMessages(batch);
        List<ServiceBusReceivedMessage> messages = receive(client.receiver("s183"), 3);
        assertEquals(List.of("a", "b", "d"), bodies(messages));
        assertEquals(range(1, 3), numbers(messages));
    }

    @Test
    void s184_what_is_completed_deferred_or_dead_is_remembered() {
        ServiceBusSenderClient sender = client.sender("s184");
        ServiceBusReceiverClient receiver = client.receiver("s184");
        List<String> ids = List.of("completed", "deferred", "dead");
        ids.forEach(id -> sender.sendMessage(identified(id, id)));
        List<ServiceBusReceivedMessage> messages = receive(receiver, 3);
        receiver.complete(messages.get(0));
        receiver.defer(messages.get(1));
        receiver.deadLetter(messages.get(2));
        ids.forEach(id -> sender.sendMessage(identified(id, id)));
        receiveNothing(receiver);
        List<ServiceBusReceivedMessage> rest = peekAll(receiver);
        assertEquals(List.of("deferred"), bodies(rest));
        assertEquals(ServiceBusMessageState.DEFERRED, rest.get(0).getState());
        assertEquals(List.of("dead"), bodies(peekAll(client.deadLetters("s184"))));
    }

    @Test
    void s185_messages_without_an_id_are_no_duplicates() {
        numbered(3).forEach(client.sender("s185")::sendMessage);
        assertEquals(texts(1, 3), bodies(receive(client.receiver("s185"), 3)));
    }

    @Test
    void s186_a_scheduled_message_has_its_id_already() {
        ServiceBusSenderClient sender = client.sender("s186");
        sender.scheduleMessage(identified("one", "scheduled"), in(Duration.ofSeconds(2)));
        sender.sendMessage(identified("one", "sent"));
        ServiceBusReceiverClient receiver = client.receiver("s186");
        assertEquals(List.of("scheduled"), bodies(receive(receiver, 1)));
        receiveNothing(receiver);
    }

    @Test
    void s187_a_topic_has_one_memory_for_all_its_subscriptions() {
        ServiceBusSenderClient sender = client.topicSender("s187");
        sender.sendMessage(identified("one", "1"));
        sender.sendMessage(identified("one", "2"));
        assertEquals(List.of("1"), bodies(peekAll(client.receiver("s187/a"))));
        assertEquals(List.of("1"), bodies(peekAll(client.receiver("s187/b"))));
    }

    @Test
    void s189_an_id_is_the_queues_and_not_the_sessions() {
        ServiceBusSenderClient sender = client.sender("s189");
        sender.sendMessage(identified("one", "1").setSessionId("x"));
        sender.sendMessage(identified("one", "2").setSessionId("y"));
        assertEquals(List.of("1"), bodies(receive(client.session("s189", "x"), 1)));
        assertEquals(List.of("1"), bodies(peekAll(client.receiver("s189"))));
    }
}

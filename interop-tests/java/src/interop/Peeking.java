package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class Peeking extends Scenarios {
    @Test
    void s60_a_peek_sees_every_state_and_changes_none() {
        ServiceBusSenderClient sender = client.sender("s60");
        sender.sendMessages(numbered(3));
        sender.scheduleMessage(message(4), in(Duration.ofHours(1)));
        ServiceBusReceiverClient receiver = client.receiver("s60");
        receiver.defer(receive(receiver, 2).get(1));
        for (int round = 0; round < 2; round += 1) {
            List<ServiceBusReceivedMessage> seen = peekAll(receiver);
            assertEquals(range(1, 4), numbers(seen));
            assertEquals(texts(1, 4), bodies(seen));
            assertEquals(
                List.of(ServiceBusMessageState.ACTIVE, ServiceBusMessageState.DEFERRED, ServiceBusMessageState.ACTIVE,
                    ServiceBusMessageState.SCHEDULED),
                seen.stream().map(ServiceBusReceivedMessage::getState).toList());
            seen.forEach(message -> assertNull(message.getLockToken()));
        }
        ServiceBusReceivedMessage active = receiveOne(receiver);
        assertEquals("3", active.getBody().toString());
        assertEquals(0, active.getDeliveryCount());
    }

    @Test
    void s61_a_peek_goes_on_where_the_last_one_ended() {
        sendNumbered("s61", 10);
        ServiceBusReceiverClient receiver = client.receiver("s61");
        assertEquals(range(4, 6), numbers(receiver.peekMessages(3, 4)));
        // The SDK goes on from a peek without a number only.
        List<Long> rest = new ArrayList<>();
        List<Long> page = numbers(receiver.peekMessages(3));
        while (!page.isEmpty()) {
            rest.addAll(page);
            page = numbers(receiver.peekMessages(3));
        }
        assertEquals(range(1, 10), rest);
    }

    @Test
    void s62_a_peek_into_an_empty_queue_finds_nothing() {
        assertEquals(List.of(), bodies(client.receiver("s62").peekMessages(10)));
        assertNull(client.receiver("s62").peekMessage());
    }

    @Test
    void s63_600_messages_are_peeked_page_by_page() {
        ServiceBusSenderClient sender = client.sender("s63");
        String filler = "x".repeat(1_000);
        for (int first = 1; first <= 600; first += 100) {
            List<ServiceBusMessage> batch = new ArrayList<>();
            for (int index = first; index < first + 100; index += 1) {
                batch.add(message(index + filler));
            }
            sender.sendMessages(batch);
        }
        List<ServiceBusReceivedMessage> seen = peekAll(client.receiver("s63"));
        assertEquals(range(1, 600), numbers(seen));
        assertEquals(texts(1, 600).stream().map(index -> index + filler).toList(), bodies(seen));
    }
}

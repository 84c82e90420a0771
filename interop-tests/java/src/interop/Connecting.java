package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class Connecting extends Scenarios {
    @Test
    void s01_the_emulators_connection_string_is_enough() {
        client.sender("s01").sendMessage(new ServiceBusMessage("hello").setMessageId("first"));
        ServiceBusReceiverClient receiver = client.receiver("s01");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        assertEquals("hello", message.getBody().toString());
        assertEquals("first", message.getMessageId());
        receiver.complete(message);
        receiveNothing(receiver);
    }

    @Test
    void s02_an_unknown_queue_is_not_found() {
        String text = "The messaging entity";
        fails(MESSAGING_ENTITY_NOT_FOUND, text, () -> client.sender("no-such-queue").sendMessage(message(1)));
        ServiceBusReceiverClient receiver = client.receiver("no-such-queue");
        fails(MESSAGING_ENTITY_NOT_FOUND, text, () -> bodies(receiver.receiveMessages(1, Duration.ofSeconds(5))));
    }

    @Test
    void s03_names_of_queues_do_not_depend_on_case() {
        send("S03", message("hello"));
        assertEquals("hello", receiveOne(client.receiver("s03")).getBody().toString());
    }

    @Test
    void s04_many_links_share_a_connection() {
        List<ServiceBusSenderClient> senders =
            List.of(client.sender("s04"), client.sender("s04"), client.sender("s04b"));
        List<ServiceBusReceiverClient> receivers =
            List.of(client.receiver("s04"), client.receiver("s04"), client.receiver("s04b"));
        senders.forEach(sender -> sender.sendMessage(message(1)));
        receivers.forEach(receiver -> receiver.complete(receiveOne(receiver)));
        senders.get(0).close();
        receivers.get(0).close();
        for (int each : new int[] {1, 2}) {
            senders.get(each).sendMessage(message(2));
            assertEquals("2", receiveOne(receivers.get(each)).getBody().toString());
        }
    }
}

package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED;
import static com.azure.messaging.servicebus.ServiceBusFailureReason.QUOTA_EXCEEDED;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class Limits extends Scenarios {
    private void receivingFails(String queue) {
        ServiceBusReceiverClient receiver = client.receiver(queue);
        fails(MESSAGING_ENTITY_DISABLED, () -> bodies(receiver.receiveMessages(1, Duration.ofSeconds(5))));
    }

    @Test
    void s64_a_queue_that_takes_nothing_still_gives() {
        fails(MESSAGING_ENTITY_DISABLED, () -> client.sender("s64").sendMessage(message(1)));
        receiveNothing(client.receiver("s64"));
    }

    @Test
    void s65_a_queue_that_gives_nothing_still_takes() {
        client.sender("s65").sendMessage(message(1));
        receivingFails("s65");
    }

    @Test
    void s66_a_disabled_queue_neither_takes_nor_gives() {
        fails(MESSAGING_ENTITY_DISABLED, () -> client.sender("s66").sendMessage(message(1)));
        receivingFails("s66");
    }

    @Test
    void s67_a_full_queue_refuses_and_takes_again_when_there_is_room() {
        ServiceBusSenderClient sender = client.sender("s67");
        String filler = "x".repeat(100 * 1024);
        int accepted = 0;
        ServiceBusException refusal = null;
        while (accepted < 30 && refusal == null) {
            try {
                sender.sendMessage(message(filler).setSubject(String.valueOf(accepted + 1)));
                accepted += 1;
            } catch (ServiceBusException error) {
                refusal = error;
            }
        }
        assertTrue(refusal != null && refusal.getReason() == QUOTA_EXCEEDED, String.valueOf(refusal));
        ServiceBusReceiverClient receiver = client.receiver("s67");
        assertEquals(texts(1, accepted), subjects(peekAll(receiver)));
        completeAll(receiver, receive(receiver, 5));
        sender.sendMessage(message(filler).setSubject(String.valueOf(accepted + 1)));
        assertEquals(texts(6, accepted + 1), subjects(peekAll(receiver)));
    }

    private static List<String> subjects(List<ServiceBusReceivedMessage> messages) {
        return messages.stream().map(ServiceBusReceivedMessage::getSubject).toList();
    }
}

package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class Expiring extends Scenarios {
    @Test
    void s41_an_expired_message_is_gone() {
        send("s41", message("short").setTimeToLive(Duration.ofSeconds(1)), message("long"));
        receiveNothing(client.deadLetters("s41"), Duration.ofSeconds(2));
        assertEquals(List.of("long"), bodies(receive(client.receiver("s41"), 1)));
        assertEquals(List.of(), peekAll(client.deadLetters("s41")));
    }

    @Test
    void s42_an_expired_message_is_dead_lettered_where_the_queue_says_so() {
        send("s42", message(1).setTimeToLive(Duration.ofSeconds(1)));
        ServiceBusReceivedMessage dead = receiveOne(client.deadLetters("s42"));
        assertEquals("TTLExpiredException", dead.getDeadLetterReason());
        assertEquals("The message expired and was dead lettered.", dead.getDeadLetterErrorDescription());
    }

    @Test
    void s43_the_queues_time_to_live_bounds_the_messages() {
        send("s43", message(1), message(2).setTimeToLive(Duration.ofHours(1)));
        ServiceBusReceiverClient receiver = client.receiver("s43");
        for (ServiceBusReceivedMessage message : receive(receiver, 2)) {
            assertEquals(Duration.ofSeconds(2), message.getTimeToLive());
            receiver.abandon(message);
        }
        assertEquals(List.of("1", "2"), bodies(receive(client.deadLetters("s43"), 2)));
    }

    @Test
    void s44_a_message_may_expire_while_it_is_locked() {
        send("s44", message(1).setTimeToLive(Duration.ofSeconds(1)));
        ServiceBusReceiverClient receiver = client.receiver("s44");
        ServiceBusReceivedMessage message = receiveOne(receiver);
        receiveNothing(receiver, Duration.ofSeconds(2));
        receiver.complete(message);
    }
}

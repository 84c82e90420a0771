package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The longest scenario begins first. */
@Order(1)
class TransactionTimeout extends Scenarios {
    private static final Duration LIMIT = Duration.ofMinutes(2).plusSeconds(5);

    @Test
    @Timeout(170)
    void s244_a_transaction_that_is_left_for_two_minutes_is_rolled_back() {
        ServiceBusSenderClient sender = client.sender("s244");
        ServiceBusReceiverClient receiver = client.receiver("s244");
        ServiceBusTransactionContext transaction = sender.createTransaction();
        sender.sendMessage(message("lost"), transaction);
        long begin = System.nanoTime();
        while (secondsSince(begin) < LIMIT.toSeconds()) {
            receiveNothing(receiver, Duration.ofSeconds(5));
        }
        refuses("amqp:transaction:", () -> sender.commitTransaction(transaction));
        sender.sendMessage(message("outside"));
        assertEquals(List.of("outside"), bodies(receive(receiver, 1)));
        assertEquals(List.of("outside"), bodies(peekAll(receiver)));
    }
}

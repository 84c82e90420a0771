package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(Jitney.class)
class OrdersTest {
    private static ServiceBusClientBuilder client(Jitney.Namespace namespace) {
        return new ServiceBusClientBuilder()
            .connectionString(namespace.connectionString())
            .customEndpointAddress(namespace.endpoint());
    }

    @Test
    void anOrderIsReceived(Jitney.Namespace namespace) {
        try (var sender = client(namespace).sender().queueName("orders").buildClient();
                var receiver = client(namespace).receiver().queueName("orders").buildClient()) {
            sender.sendMessage(new ServiceBusMessage("hello"));
            var message = receiver.receiveMessages(1, Duration.ofSeconds(20)).iterator().next();
            assertEquals("hello", message.getBody().toString());
            receiver.complete(message);
        }
    }

    @Test
    void anOrderStaysInTheQueue(Jitney.Namespace namespace) {
        try (var sender = client(namespace).sender().queueName("orders").buildClient();
                var receiver = client(namespace).receiver().queueName("orders").buildClient()) {
            sender.sendMessage(new ServiceBusMessage("stays"));
            var bodies = receiver.peekMessages(10).stream().map(message -> message.getBody().toString()).toList();
            assertEquals(List.of("stays"), bodies);
        }
    }
}

package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(Jitney.class)
class NewsTest {
    @Test
    void newsReachTheSubscription(Jitney.Namespace namespace) {
        var client = new ServiceBusClientBuilder()
            .connectionString(namespace.connectionString())
            .customEndpointAddress(namespace.endpoint());
        try (var sender = client.sender().topicName("news").buildClient();
                var receiver = client.receiver().topicName("news").subscriptionName("eu").buildClient()) {
            sender.sendMessage(new ServiceBusMessage("published"));
            var message = receiver.receiveMessages(1, Duration.ofSeconds(20)).iterator().next();
            assertEquals("published", message.getBody().toString());
        }
    }
}

package spring;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessageContext;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.SubQueue;
import com.azure.spring.messaging.ConsumerIdentifier;
import com.azure.spring.messaging.PropertiesSupplier;
import com.azure.spring.messaging.implementation.annotation.EnableAzureMessaging;
import com.azure.spring.messaging.servicebus.core.ServiceBusTemplate;
import com.azure.spring.messaging.servicebus.core.properties.ConsumerProperties;
import com.azure.spring.messaging.servicebus.core.properties.ProcessorProperties;
import com.azure.spring.messaging.servicebus.implementation.core.annotation.ServiceBusListener;
import com.azure.spring.messaging.servicebus.support.ServiceBusMessageHeaders;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.messaging.support.MessageBuilder;

/** A small program as Spring's users write them: listeners, and what they have been given. */
@SpringBootConfiguration
@EnableAutoConfiguration
@EnableAzureMessaging
public class Application {
    /** What an order is to this program: JSON on its way. */
    public record Order(String name, int amount) { }

    /** What a listener was given. */
    record Given(Object payload, Map<String, Object> headers) { }

    private final Map<String, BlockingQueue<Given>> seen = new ConcurrentHashMap<>();

    private final ObjectProvider<ServiceBusTemplate> template;

    Application(ObjectProvider<ServiceBusTemplate> template) {
        this.template = template;
    }

    BlockingQueue<Given> seen(String queue) {
        return seen.computeIfAbsent(queue, name -> new LinkedBlockingQueue<>());
    }

    /** What the listeners' processors have of their own. */
    @Bean
    PropertiesSupplier<ConsumerIdentifier, ProcessorProperties> processors() {
        return key -> {
            ProcessorProperties properties = new ProcessorProperties();
            switch (key.getDestination()) {
                case "s402" -> {
                    properties.setSessionEnabled(true);
                    properties.setMaxConcurrentSessions(3);
                    properties.setSessionIdleTimeout(Duration.ofSeconds(1));
                }
                case "s403" -> properties.setAutoComplete(false);
                case "s401/$DeadLetterQueue" -> properties.setSubQueue(SubQueue.DEAD_LETTER_QUEUE);
                default -> properties.setMaxConcurrentCalls(4);
            }
            return properties;
        };
    }

    /** What takes the answers to requests: they come by sessions. */
    @Bean
    PropertiesSupplier<ConsumerIdentifier, ConsumerProperties> consumers() {
        return key -> {
            ConsumerProperties properties = new ConsumerProperties();
            properties.setSessionEnabled(true);
            return properties;
        };
    }

    @ServiceBusListener(destination = "s400")
    void takeOrder(@Payload Order order, @Headers Map<String, Object> headers) {
        seen("s400").add(new Given(order, headers));
    }

    @ServiceBusListener(destination = "s401")
    void failForSome(@Payload String text, @Headers Map<String, Object> headers) {
        seen("s401").add(new Given(text, headers));
        if (text.equals("bad")) {
            throw new IllegalArgumentException("cannot work with that");
        }
    }

    @ServiceBusListener(destination = "s402")
    void takeInSession(@Payload String text, @Headers Map<String, Object> headers) {
        seen("s402").add(new Given(text, headers));
    }

    /** Settles by itself. */
    @ServiceBusListener(destination = "s403")
    void settle(@Payload String text,
            @Header(ServiceBusMessageHeaders.RECEIVED_MESSAGE_CONTEXT) ServiceBusReceivedMessageContext context,
            @Headers Map<String, Object> headers) {
        seen("s403").add(new Given(text, headers));
        if (text.equals("bad")) {
            context.deadLetter(new DeadLetterOptions().setDeadLetterReason("spring said so"));
        } else if (text.equals("again") && context.getMessage().getDeliveryCount() == 0) {
            context.abandon();
        } else {
            context.complete();
        }
    }

    /** Answers to where the message asks for it. */
    @ServiceBusListener(destination = "s404")
    void answer(@Payload String question,
            @Header(ServiceBusMessageHeaders.RECEIVED_MESSAGE_CONTEXT) ServiceBusReceivedMessageContext context) {
        ServiceBusReceivedMessage message = context.getMessage();
        template.getObject().sendAsync(message.getReplyTo(), MessageBuilder.withPayload("answer to " + question)
            .setHeader(ServiceBusMessageHeaders.SESSION_ID, message.getReplyToSessionId()).build()).block();
    }

    @ServiceBusListener(destination = "s405", group = "all")
    void takeFromTopic(@Payload byte[] body, @Headers Map<String, Object> headers) {
        seen("s405").add(new Given(body, headers));
    }
}

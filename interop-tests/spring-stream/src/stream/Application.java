package stream;

import com.azure.spring.messaging.AzureHeaders;
import com.azure.spring.messaging.checkpoint.Checkpointer;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import java.util.function.Function;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.messaging.Message;

/** A small program as Spring's users write them: functions, bound to entities by properties, and what they have been given. */
@SpringBootConfiguration
@EnableAutoConfiguration
public class Application {
    /** What an order is to this program: JSON on its way. */
    public record Order(String name, int amount) { }

    private final Map<String, BlockingQueue<Message<?>>> seen = new ConcurrentHashMap<>();

    BlockingQueue<Message<?>> seen(String function) {
        return seen.computeIfAbsent(function, name -> new LinkedBlockingQueue<>());
    }

    @Bean
    Consumer<Message<Order>> orders() {
        return message -> seen("orders").add(message);
    }

    /** Stands between two queues. */
    @Bean
    Function<String, String> shout() {
        return text -> text.toUpperCase(Locale.ROOT);
    }

    @Bean
    Consumer<Message<String>> shouted() {
        return message -> seen("shouted").add(message);
    }

    @Bean
    Consumer<Message<String>> failing() {
        return message -> {
            seen("failing").add(message);
            if (message.getPayload().equals("bad")) {
                throw new IllegalArgumentException("cannot work with that");
            }
        };
    }

    /** Completes by itself. */
    @Bean
    Consumer<Message<String>> settling() {
        return message -> {
            seen("settling").add(message);
            message.getHeaders().get(AzureHeaders.CHECKPOINTER, Checkpointer.class).success().block();
        };
    }

    @Bean
    Consumer<Message<String>> sessions() {
        return message -> seen("sessions").add(message);
    }

    @Bean
    Consumer<Message<byte[]>> news() {
        return message -> seen("news").add(message);
    }
}

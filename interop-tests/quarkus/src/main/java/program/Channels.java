package program;

import io.vertx.core.json.JsonObject;
import jakarta.enterprise.context.ApplicationScoped;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.eclipse.microprofile.reactive.messaging.Channel;
import org.eclipse.microprofile.reactive.messaging.Emitter;
import org.eclipse.microprofile.reactive.messaging.Incoming;
import org.eclipse.microprofile.reactive.messaging.Outgoing;

/** Channels of Quarkus Messaging, which properties bind to entities. */
@ApplicationScoped
public class Channels {
    /** What an order is to this program: JSON on its way. */
    public record Order(String name, int amount) { }

    /** What is to be paid for an order. */
    public record Bill(String name, int price) { }

    @Channel("new-orders")
    Emitter<Order> orders;

    private final BlockingQueue<String> news = new LinkedBlockingQueue<>();

    public Emitter<Order> orders() {
        return orders;
    }

    public BlockingQueue<String> news() {
        return news;
    }

    /** Stands between two queues. */
    @Incoming("orders")
    @Outgoing("bills")
    Bill bill(JsonObject json) {
        Order order = json.mapTo(Order.class);
        if (order.amount() < 0) {
            throw new IllegalArgumentException("cannot work with that");
        }
        return new Bill(order.name(), 3 * order.amount());
    }

    @Incoming("news")
    void read(byte[] text) {
        news.add(new String(text, StandardCharsets.UTF_8));
    }
}

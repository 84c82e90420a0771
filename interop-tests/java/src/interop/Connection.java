package interop;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.AmqpTransportType;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusClientBuilder.ServiceBusReceiverClientBuilder;
import com.azure.messaging.servicebus.ServiceBusClientBuilder.ServiceBusSessionReceiverClientBuilder;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusRuleManagerClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;

/**
 * One connection to the broker, and the clients that share it.
 *
 * <p>An entity is named {@code queue}, {@code topic} or {@code topic/subscription}.
 */
final class Connection implements AutoCloseable {
    /** How long an expected answer may take. */
    static final Duration DEADLINE = Duration.ofSeconds(20);

    /** How the open broker is reached: by AMQP, or by {@code wss}. */
    static final String TRANSPORT = System.getenv().getOrDefault("INTEROP_TRANSPORT", "");

    private final ServiceBusClientBuilder builder;
    private final Deque<AutoCloseable> open = new ArrayDeque<>();

    /** A connection to the open broker that gives up soon: what fails here fails for good. */
    Connection() {
        this(DEADLINE);
    }

    /** A connection whose waits for a session end after {@code tryTimeout}. */
    Connection(Duration tryTimeout) {
        this(Objects.requireNonNull(System.getenv("JITNEY_CONNECTION_STRING"), "no broker is named"), tryTimeout);
        if (TRANSPORT.equals("wss")) {
            overWebSockets();
        }
    }

    Connection(String connectionString, Duration tryTimeout) {
        this(new ServiceBusClientBuilder().connectionString(connectionString), tryTimeout);
    }

    Connection(ServiceBusClientBuilder builder, Duration tryTimeout) {
        AmqpRetryOptions retry = new AmqpRetryOptions()
            .setMaxRetries(1).setDelay(Duration.ofMillis(200)).setTryTimeout(tryTimeout);
        this.builder = builder.retryOptions(retry);
    }

    /** One session at AMQP's level for all links, so that a transaction may span entities. */
    Connection crossEntity() {
        builder.enableCrossEntityTransactions();
        return this;
    }

    /** To the same port, or to 443 where none is named. */
    Connection overWebSockets() {
        builder.transportType(AmqpTransportType.AMQP_WEB_SOCKETS);
        return this;
    }

    /** Over a custom endpoint, in place of the connection string's. */
    Connection by(String address) {
        builder.customEndpointAddress(address);
        return this;
    }

    ServiceBusSenderClient sender(String entity) {
        return keep(builder.sender().queueName(entity).buildClient());
    }

    ServiceBusSenderClient topicSender(String topic) {
        return keep(builder.sender().topicName(topic).buildClient());
    }

    ServiceBusReceiverClient receiver(String entity) {
        return keep(receivers(entity).buildClient());
    }

    ServiceBusReceiverClient deleting(String entity) {
        return keep(receivers(entity).receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient());
    }

    ServiceBusReceiverClient deadLetters(String entity) {
        return keep(receivers(entity).subQueue(SubQueue.DEAD_LETTER_QUEUE).buildClient());
    }

    ServiceBusReceiverClient prefetching(String entity, int count) {
        return keep(receivers(entity).prefetchCount(count).buildClient());
    }

    /** The receiver of a session, by its name. */
    ServiceBusReceiverClient session(String entity, String id) {
        return keep(acceptor(entity).acceptSession(id));
    }

    /** The receiver of the next session. */
    ServiceBusReceiverClient nextSession(String entity) {
        return keep(acceptor(entity).acceptNextSession());
    }

    ServiceBusSessionReceiverClient acceptor(String entity) {
        return keep(sessionReceivers(entity).buildClient());
    }

    ServiceBusRuleManagerClient rules(String entity) {
        String[] names = entity.split("/");
        return keep(builder.ruleManager().topicName(names[0]).subscriptionName(names[1]).buildClient());
    }

    /** For clients that a scenario configures itself: no lock is renewed unless it says so. */
    ServiceBusReceiverClientBuilder receivers(String entity) {
        String[] names = entity.split("/");
        ServiceBusReceiverClientBuilder receivers = builder.receiver().maxAutoLockRenewDuration(Duration.ZERO);
        return names.length == 1
            ? receivers.queueName(names[0]) : receivers.topicName(names[0]).subscriptionName(names[1]);
    }

    ServiceBusSessionReceiverClientBuilder sessionReceivers(String entity) {
        String[] names = entity.split("/");
        ServiceBusSessionReceiverClientBuilder receivers =
            builder.sessionReceiver().maxAutoLockRenewDuration(Duration.ZERO);
        return names.length == 1
            ? receivers.queueName(names[0]) : receivers.topicName(names[0]).subscriptionName(names[1]);
    }

    ServiceBusClientBuilder builder() {
        return builder;
    }

    /** Closes the client with the connection, if it is not closed before. */
    synchronized <T extends AutoCloseable> T keep(T client) {
        open.push(client);
        return client;
    }

    @Override
    public synchronized void close() throws Exception {
        while (!open.isEmpty()) {
            open.pop().close();
        }
    }
}

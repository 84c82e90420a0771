package program;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusProcessorClient;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessageContext;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import io.quarkus.runtime.ShutdownEvent;
import io.quarkus.runtime.StartupEvent;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.event.Observes;
import jakarta.inject.Inject;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.jboss.logging.Logger;

/** Processors that live as long as the program: one between two queues, one of sessions. */
@ApplicationScoped
public class Processors {
    /** What the first one reads, with three deliveries at most, and what it writes. */
    public static final String SPOKEN = "s401";
    public static final String SHOUTED = "s404";
    public static final String SESSIONS = "s402";

    private static final Logger LOG = Logger.getLogger(Processors.class);

    @Inject
    ServiceBusClientBuilder builder;

    private final BlockingQueue<ServiceBusReceivedMessage> ofSessions = new LinkedBlockingQueue<>();
    private ServiceBusSenderClient shouted;
    private ServiceBusProcessorClient shouting;
    private ServiceBusProcessorClient sessions;

    void start(@Observes StartupEvent event) {
        shouted = builder.sender().queueName(SHOUTED).buildClient();
        shouting = builder.processor().queueName(SPOKEN).processMessage(this::shout)
            .processError(error -> LOG.info("shouting", error.getException())).buildProcessorClient();
        sessions = builder.sessionProcessor().queueName(SESSIONS).maxConcurrentSessions(2)
            // The next session is taken when one has had nothing for so long.
            .sessionIdleTimeout(Duration.ofSeconds(1)).processMessage(this::note)
            .processError(error -> LOG.info("sessions", error.getException())).buildProcessorClient();
        shouting.start();
        sessions.start();
    }

    void stop(@Observes ShutdownEvent event) {
        shouting.close();
        sessions.close();
        shouted.close();
    }

    /** What came of all sessions. */
    public BlockingQueue<ServiceBusReceivedMessage> ofSessions() {
        return ofSessions;
    }

    private void shout(ServiceBusReceivedMessageContext context) {
        String text = context.getMessage().getBody().toString();
        if (text.equals("bad")) {
            throw new IllegalArgumentException("cannot work with that");
        }
        ServiceBusMessage answer = new ServiceBusMessage(text.toUpperCase(Locale.ROOT));
        shouted.sendMessage(answer.setMessageId(context.getMessage().getMessageId()));
    }

    private void note(ServiceBusReceivedMessageContext context) {
        ofSessions.add(context.getMessage());
    }
}

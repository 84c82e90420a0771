package jms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSProducer;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.TransactionRolledBackRuntimeException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** The client's own failover, over a broker that is killed, or stopped, and started again. */
@Isolated
class Reconnecting extends Scenarios {
    private static final int COUNT = 1000;

    private static void control(String verb) throws Exception {
        List<String> command = new ArrayList<>(List.of(environment("JITNEY_BROKER_CONTROL").split(" ")));
        command.add(verb);
        Process process = new ProcessBuilder(command).inheritIO().start();
        assertTrue(process.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, process.exitValue());
    }

    @Test
    void s394_a_thousand_unacknowledged_come_again_after_a_kill() throws Exception {
        JmsConnectionFactory factory = factoryTo(
            "failover:(" + address() + "?amqp.idleTimeout=120000)?failover.maxReconnectDelay=500"
                + "&jms.prefetchPolicy.all=" + COUNT);
        sendNumbered("s394", COUNT);
        JMSContext context = keep(factory.createContext(JMSContext.CLIENT_ACKNOWLEDGE));
        Queue queue = context.createQueue("s394");
        JMSConsumer consumer = context.createConsumer(queue);
        assertEquals(texts(1, COUNT), texts(consumer, COUNT));
        JMSContext sending = keep(factory.createContext());
        JMSProducer producer = sending.createProducer();
        producer.send(sending.createQueue("s394b"), "before");

        control("kill");
        // A send waits for the broker to be there again.
        CompletableFuture<Void> meanwhile = CompletableFuture.runAsync(
            () -> producer.send(sending.createQueue("s394b"), "meanwhile"));
        control("start");
        meanwhile.get(DEADLINE.toSeconds(), TimeUnit.SECONDS);

        // Locks do not survive: all thousand come again, to the same consumer.
        List<String> again = new ArrayList<>();
        Message last = null;
        for (int n = 1; n <= COUNT; n += 1) {
            last = receive(consumer);
            again.add(text(last));
        }
        assertEquals(texts(1, COUNT), again);
        last.acknowledge();
        context.close();
        isEmpty("s394");
        JMSConsumer others = sending.createConsumer(sending.createQueue("s394b"));
        assertEquals(List.of("before", "meanwhile"), texts(others, 2));
        receiveNothing(others);
    }

    /** A graceful stop is to the client's failover what a kill is: its links are attached again. */
    @Test
    void s394_a_consumer_and_a_producer_go_on_over_a_stop() throws Exception {
        JmsConnectionFactory factory = factoryTo("failover:(" + address() + ")?failover.maxReconnectDelay=500");
        JMSContext context = keep(factory.createContext());
        Queue queue = context.createQueue("s394d");
        JMSConsumer consumer = context.createConsumer(queue);
        JMSContext sending = keep(factory.createContext());
        JMSProducer producer = sending.createProducer();
        producer.send(sending.createQueue("s394d"), "before");
        assertEquals(List.of("before"), texts(consumer, 1));

        control("stop");
        // A send and a receive wait for the broker to be there again.
        CompletableFuture<Void> meanwhile = CompletableFuture.runAsync(
            () -> producer.send(sending.createQueue("s394d"), "meanwhile"));
        control("start");
        meanwhile.get(DEADLINE.toSeconds(), TimeUnit.SECONDS);
        assertEquals(List.of("meanwhile"), texts(consumer, 1));
        producer.send(sending.createQueue("s394d"), "then");
        assertEquals(List.of("then"), texts(consumer, 1));
        receiveNothing(consumer);
    }

    /** A transaction that spans the restart cannot be committed; the next one can. */
    @Test
    void s394_a_transaction_over_a_kill_is_rolled_back() throws Exception {
        JmsConnectionFactory factory = factoryTo("failover:(" + address() + ")?failover.maxReconnectDelay=500");
        JMSContext context = keep(factory.createContext(JMSContext.SESSION_TRANSACTED));
        Queue queue = context.createQueue("s394c");
        context.createProducer().send(queue, "never");
        control("kill");
        control("start");
        assertThrows(TransactionRolledBackRuntimeException.class, context::commit);
        // The client may need another try until its connection is there again.
        long end = System.nanoTime() + DEADLINE.toNanos();
        for (boolean isCommitted = false; !isCommitted;) {
            assertTrue(System.nanoTime() < end);
            try {
                context.createProducer().send(queue, "then");
                context.commit();
                isCommitted = true;
            } catch (TransactionRolledBackRuntimeException error) {
                isCommitted = false;
            }
        }
        JMSConsumer consumer = context.createConsumer(queue);
        assertEquals(List.of("then"), texts(consumer, 1));
        context.commit();
        receiveNothing(consumer);
    }
}

package jms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Topics as any AMQP client has them: sent to by their name; a subscription is received from as a queue is. */
class Topics extends Scenarios {
    @Test
    void s389_subscriptions_by_their_addresses() throws Exception {
        JMSContext context = context();
        for (int n = 1; n <= 2; n += 1) {
            context.createProducer().setProperty("n", n).send(context.createTopic("s389"), String.valueOf(n));
        }
        JMSConsumer all = context.createConsumer(context.createQueue("s389/Subscriptions/all"));
        assertEquals(texts(1, 2), texts(all, 2));
        // With a rule; names do not depend on case.
        JMSConsumer one = context.createConsumer(context.createQueue("S389/subscriptions/ONE"));
        Message message = receive(one);
        assertEquals("1", text(message));
        assertEquals(1, message.getIntProperty("n"));
        receiveNothing(one);
    }

    /** What is rejected lies in the dead-letter queue of its subscription. */
    @Test
    void s389_dead_letters_of_a_subscription() throws Exception {
        JMSContext context = context(101 /* INDIVIDUAL_ACKNOWLEDGE */);
        context.createProducer().send(context.createTopic("s389b"), "bad");
        Message message = receive(context.createConsumer(context.createQueue("s389b/Subscriptions/all")));
        message.setIntProperty("JMS_AMQP_ACK_TYPE", 2);
        message.acknowledge();
        JMSConsumer dead = context.createConsumer(context.createQueue("s389b/Subscriptions/all/$DeadLetterQueue"));
        Message letter = receive(dead);
        assertEquals("bad", text(letter));
        letter.acknowledge();
    }

    /** In one transaction: from a queue to a topic. */
    @Test
    void s389_a_transaction_of_a_queue_and_a_topic() throws Exception {
        JMSContext context = context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer watcher = context().createConsumer(context.createQueue("s389c/Subscriptions/all"));
        context.createProducer().send(context.createTopic("s389c"), "1");
        context.createProducer().send(context.createQueue("s389q"), "2");
        receiveNothing(watcher);
        context.commit();
        assertEquals(List.of("1"), texts(watcher, 1));
        assertEquals(List.of("2"), texts(context().createConsumer(context.createQueue("s389q")), 1));
        // A transacted session receives from the entity that it began with.
        assertThrows(JMSRuntimeException.class, () -> context.createConsumer(context.createQueue("s389q")));
    }

    @Test
    void s389_what_no_topic_does() {
        JMSContext context = context();
        assertThrows(JMSRuntimeException.class, () -> context.createConsumer(context.createQueue("s389")));
        assertThrows(JMSRuntimeException.class,
            () -> context.createProducer().send(context.createQueue("s389/Subscriptions/all"), "1"));
        assertThrows(JMSRuntimeException.class,
            () -> context.createConsumer(context.createQueue("s389/Subscriptions/none")));
    }
}

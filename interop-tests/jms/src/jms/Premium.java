package jms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.servicebus.jms.ServiceBusJmsConnectionFactory;
import com.azure.servicebus.jms.ServiceBusJmsConnectionFactorySettings;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * JMS 2.0 as the service's Premium tier has it: by Microsoft's own factory, which says at open that it is a client
 * provider. It always means TLS; the broker speaks that on every port.
 */
class Premium extends Scenarios {
    private static ServiceBusJmsConnectionFactory premium() {
        Trust.theBroker();
        ServiceBusJmsConnectionFactorySettings settings = new ServiceBusJmsConnectionFactorySettings();
        settings.setMaxReconnectAttempts(3);
        return new ServiceBusJmsConnectionFactory(
            "RootManageSharedAccessKey", "SAS_KEY_VALUE", "localhost:" + environment("JITNEY_AMQP_PORT"), settings);
    }

    private JMSContext premium(String clientId, int mode) {
        ServiceBusJmsConnectionFactory factory = premium();
        if (clientId != null) {
            factory.setClientId(clientId);
        }
        return keep(factory.createContext(mode));
    }

    private JMSContext premium(String clientId) {
        return premium(clientId, JMSContext.AUTO_ACKNOWLEDGE);
    }

    private static void send(JMSContext context, Topic topic, int first, int last) {
        IntStream.rangeClosed(first, last).forEach(n ->
            context.createProducer().setProperty("n", n).send(topic, String.valueOf(n)));
    }

    private static List<String> browse(QueueBrowser browser) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (Object message : Collections.list(browser.getEnumeration())) {
            texts.add(text((Message) message));
        }
        browser.close();
        return texts;
    }

    @Test
    void s388_delivery_delay_by_microsofts_factory() throws Exception {
        JMSContext context = premium(null);
        Queue queue = context.createQueue("s388b");
        context.createProducer().setDeliveryDelay(2000).send(queue, "later");
        context.createProducer().send(queue, "now");
        JMSConsumer consumer = context.createConsumer(queue);
        assertEquals("now", text(receive(consumer)));
        receiveNothing(consumer);
        assertEquals("later", text(receive(consumer)));
    }

    /** A browser sees all that can be received, in order, and takes nothing. */
    @Test
    void s391_a_browser_takes_nothing() throws Exception {
        sendNumbered("s391", 5);
        JMSContext context = premium(null);
        Queue queue = context.createQueue("s391");
        assertEquals(texts(1, 5), browse(context.createBrowser(queue)));
        assertEquals(texts(1, 5), browse(context.createBrowser(queue)));
        JMSConsumer consumer = context.createConsumer(queue);
        for (int n = 1; n <= 5; n += 1) {
            Message message = receive(consumer);
            assertEquals(String.valueOf(n), text(message));
            assertEquals(1, deliveries(message));
        }
        assertEquals(List.of(), browse(context.createBrowser(queue)));
    }

    @Test
    void s391_a_browser_with_a_selector() throws Exception {
        JMSContext context = premium(null);
        Queue queue = context.createQueue("s391b");
        for (int n = 1; n <= 6; n += 1) {
            context.createProducer().setProperty("n", n).send(queue, String.valueOf(n));
        }
        assertEquals(texts(5, 6), browse(context.createBrowser(queue, "n > 4")));
        assertEquals(texts(1, 6), texts(context.createConsumer(queue), 6));
    }

    /** What a selector does not take is left for others. */
    @Test
    void s392_a_consumer_with_a_selector() throws Exception {
        JMSContext context = premium(null);
        Queue queue = context.createQueue("s392");
        for (int n = 0; n <= 9; n += 1) {
            context.createProducer().setJMSCorrelationID(String.valueOf(n))
                .setProperty("prop1", n % 2 == 0 ? "no" : "test").setProperty("n", n)
                .send(queue, String.valueOf(n));
        }
        JMSConsumer consumer =
            context.createConsumer(queue, "JMSCorrelationID = '5' AND prop1 = 'test' OR n BETWEEN 8 AND 8");
        assertEquals(List.of("5", "8"), texts(consumer, 2));
        receiveNothing(consumer);
        consumer.close();
        assertEquals(List.of("0", "1", "2", "3", "4", "6", "7", "9"), texts(context.createConsumer(queue), 8));
    }

    @Test
    void s392_headers_in_selectors() throws Exception {
        JMSContext context = premium(null);
        Queue queue = context.createQueue("s392b");
        context.createProducer().setProperty("color", "blue").send(queue, "blue");
        context.createProducer().setJMSType("order").setProperty("color", "red").send(queue, "order");
        context.createProducer().setPriority(9).send(queue, "urgent");
        JMSConsumer urgent = context.createConsumer(queue, "JMSPriority > 8");
        assertEquals(List.of("urgent"), texts(urgent, 1));
        urgent.close();
        JMSConsumer orders = context.createConsumer(queue, "JMSType = 'order' AND color IN ('red', 'green')");
        assertEquals(List.of("order"), texts(orders, 1));
        orders.close();
        JMSConsumer rest = context.createConsumer(queue, "color LIKE 'bl%' AND missing IS NULL");
        assertEquals(List.of("blue"), texts(rest, 1));
    }

    @Test
    void s393_a_request_is_answered_to_a_temporary_queue() throws Exception {
        JMSContext asking = premium(null);
        JMSContext answering = premium(null);
        Queue questions = asking.createQueue("s393");
        TemporaryQueue mine = asking.createTemporaryQueue();
        assertNotEquals(mine.getQueueName(), asking.createTemporaryQueue().getQueueName());
        JMSConsumer answers = asking.createConsumer(mine);
        TextMessage question = asking.createTextMessage("question");
        question.setJMSReplyTo(mine);
        asking.createProducer().send(questions, question);
        Message asked = receive(answering.createConsumer(questions));
        Queue replyTo = (Queue) asked.getJMSReplyTo();
        answering.createProducer().setJMSCorrelationID(asked.getJMSMessageID()).send(replyTo, "answer");
        Message answer = receive(answers);
        assertEquals("answer", text(answer));
        assertEquals(question.getJMSMessageID(), answer.getJMSCorrelationID());

        // It lives as long as its connection.
        String name = mine.getQueueName();
        asking.close();
        assertThrows(JMSRuntimeException.class,
            () -> answering.createProducer().send(answering.createQueue(name), "too late"));
    }

    @Test
    void s393_a_temporary_topic() throws Exception {
        JMSContext context = premium(null);
        TemporaryTopic topic = context.createTemporaryTopic();
        JMSConsumer one = context.createConsumer(topic);
        JMSConsumer two = context.createConsumer(topic);
        send(context, topic, 1, 3);
        assertEquals(texts(1, 3), texts(one, 3));
        assertEquals(texts(1, 3), texts(two, 3));
        one.close();
        two.close();
        topic.delete();
    }

    /** A durable subscription belongs to a client id, keeps what comes meanwhile, and has one consumer at a time. */
    @Test
    void s396_unshared_durable_subscriptions() throws Exception {
        JMSContext mine = premium("s396-client");
        Topic topic = mine.createTopic("s396");
        JMSConsumer first = mine.createDurableConsumer(topic, "news");
        assertThrows(JMSRuntimeException.class, () -> mine.createDurableConsumer(topic, "news"));
        send(mine, topic, 1, 1);
        assertEquals(texts(1, 1), texts(first, 1));
        first.close();
        mine.close();
        JMSContext other = premium("s396-other");
        JMSConsumer others = other.createDurableConsumer(topic, "news");
        send(other, topic, 2, 3);
        assertEquals(texts(2, 3), texts(others, 2));
        // To administrators, and by its address, it is NAME$CLIENT$D.
        JMSContext again = premium("s396-client");
        JMSConsumer second = again.createDurableConsumer(topic, "news");
        assertEquals(texts(2, 3), texts(second, 2));
        second.close();
        send(other, topic, 4, 4);
        JMSContext plain = context();
        Queue address = plain.createQueue("s396/Subscriptions/news$s396-client$D");
        assertEquals(texts(4, 4), texts(plain.createConsumer(address), 1));
        plain.close();
        again.unsubscribe("news");
        JMSContext after = context();
        assertThrows(JMSRuntimeException.class, () -> after.createConsumer(address));
        others.close();
        other.unsubscribe("news");
    }

    @Test
    void s396_a_durable_subscription_with_a_selector() throws Exception {
        JMSContext context = premium("s396b-client");
        Topic topic = context.createTopic("s396b");
        JMSConsumer consumer = context.createDurableConsumer(topic, "some", "n >= 2 AND n < 4", false);
        send(context, topic, 1, 5);
        assertEquals(texts(2, 3), texts(consumer, 2));
        receiveNothing(consumer);
        consumer.close();
        context.unsubscribe("some");
    }

    @Test
    void s397_shared_subscriptions() throws Exception {
        for (boolean isDurable : new boolean[] {true, false}) {
            JMSContext one = premium(null);
            JMSContext two = premium(null);
            Topic topic = one.createTopic("s397");
            String name = isDurable ? "durable" : "volatile";
            JMSConsumer a = shared(one, topic, name, isDurable);
            JMSConsumer b = shared(two, topic, name, isDurable);
            CompletableFuture<Integer> count = CompletableFuture.supplyAsync(() -> drained(a));
            send(premium(null), topic, 1, 40);
            int others = drained(b);
            assertEquals(40, others + count.get(DEADLINE.toSeconds(), TimeUnit.SECONDS));
            a.close();
            b.close();
            send(two, topic, 41, 41);
            JMSConsumer c = shared(two, topic, name, isDurable);
            if (isDurable) {
                assertEquals(texts(41, 41), texts(c, 1));
                c.close();
                two.unsubscribe(name);
            } else {
                receiveNothing(c);
            }
        }
    }

    private static JMSConsumer shared(JMSContext context, Topic topic, String name, boolean isDurable) {
        return isDurable ? context.createSharedDurableConsumer(topic, name) : context.createSharedConsumer(topic, name);
    }

    private static int drained(JMSConsumer consumer) {
        int count = 0;
        while (consumer.receive(2000) != null) {
            count += 1;
        }
        return count;
    }

    /** Without a name a subscription lives as long as its consumer. */
    @Test
    void s397_unshared_volatile_subscriptions() throws Exception {
        JMSContext context = premium(null);
        Topic topic = context.createTopic("s397b");
        send(context, topic, 1, 1);
        JMSConsumer one = context.createConsumer(topic);
        JMSConsumer two = context.createConsumer(topic, "n = 3");
        send(context, topic, 2, 3);
        assertEquals(texts(2, 3), texts(one, 2));
        assertEquals(texts(3, 3), texts(two, 1));
        receiveNothing(one);
        receiveNothing(two);
    }

    /** Queues and topics that a client with the right to manage names are made. */
    @Test
    void s398_entities_are_made_when_they_are_used() throws Exception {
        JMSContext context = premium(null);
        Queue queue = context.createQueue("s398-made");
        context.createProducer().send(queue, "hello");
        assertEquals("hello", text(receive(context.createConsumer(queue))));
        Queue other = context.createQueue("s398-made-by-a-consumer");
        assertNull(context.createConsumer(other).receiveNoWait());
        context.createProducer().send(context.createTopic("s398-topic"), "nobody");
        JMSContext plain = context();
        plain.createProducer().send(plain.createQueue("s398-made"), "again");
        assertEquals("again", text(receive(context.createConsumer(queue))));
    }

    /** Over several queues. */
    @Test
    void s399_transactions() throws Exception {
        JMSContext context = premium(null, JMSContext.SESSION_TRANSACTED);
        sendNumbered("s399", 1);
        assertEquals(texts(1, 1), texts(context.createConsumer(context.createQueue("s399")), 1));
        context.createProducer().send(context.createQueue("s399b"), "one");
        context.createProducer().send(context.createQueue("s399c"), "two");
        context.commit();
        assertEquals(List.of("one"), texts(context().createConsumer(context.createQueue("s399b")), 1));
        assertEquals(List.of("two"), texts(context().createConsumer(context.createQueue("s399c")), 1));
        context.close();
        isEmpty("s399");
    }
}

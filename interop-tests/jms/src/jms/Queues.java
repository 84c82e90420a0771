package jms;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidDestinationRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class Queues extends Scenarios {
    @Test
    void s381_a_message_comes_as_it_was_sent() throws Exception {
        JMSContext context = context();
        Queue queue = context.createQueue("s381");
        long before = System.currentTimeMillis();
        TextMessage sent = context.createTextMessage("hello");
        context.createProducer().send(queue, sent);
        long after = System.currentTimeMillis();
        assertTrue(sent.getJMSMessageID().startsWith("ID:"));

        JMSConsumer consumer = context.createConsumer(queue);
        Message received = receive(consumer);
        assertEquals("hello", text(received));
        assertEquals(sent.getJMSMessageID(), received.getJMSMessageID());
        assertTrue(before <= received.getJMSTimestamp() && received.getJMSTimestamp() <= after);
        assertEquals(queue, received.getJMSDestination());
        assertFalse(received.getJMSRedelivered());
        assertEquals(1, deliveries(received));
        // No time to live of its own: the queue's, two hours.
        assertEquals(7_200_000, received.getJMSExpiration() - received.getJMSTimestamp(), 2000);
        assertEquals(Message.DEFAULT_PRIORITY, received.getJMSPriority());
        assertEquals(DeliveryMode.PERSISTENT, received.getJMSDeliveryMode());
        receiveNothing(consumer);
        context.close();
        isEmpty("s381");
    }

    /** Names of queues do not depend on case; a queue that is not there is no destination. */
    @Test
    void s381_names() throws Exception {
        JMSContext context = context();
        context.createProducer().send(context.createQueue("S381B"), "hello");
        assertEquals("hello", text(receive(context.createConsumer(context.createQueue("s381b")))));
        assertThrows(InvalidDestinationRuntimeException.class,
            () -> context.createConsumer(context.createQueue("no-such-queue")));
        assertThrows(InvalidDestinationRuntimeException.class,
            () -> context.createProducer().send(context.createQueue("no-such-queue"), "1"));
    }

    @Test
    void s382_messages_of_every_type() throws Exception {
        JMSContext context = context();
        JMSProducer producer = context.createProducer();
        Queue queue = context.createQueue("s382");
        JMSConsumer consumer = context.createConsumer(queue);
        byte[] bytes = new byte[300_000];
        new Random(1).nextBytes(bytes);

        producer.send(queue, "ä text: 文");
        assertEquals("ä text: 文", assertInstanceOf(TextMessage.class, receive(consumer)).getText());
        producer.send(queue, bytes);
        BytesMessage gotBytes = assertInstanceOf(BytesMessage.class, receive(consumer));
        assertArrayEquals(bytes, gotBytes.getBody(byte[].class));
        producer.send(queue, Map.of("text", "t", "int", 7, "long", 1L << 40, "double", 1.5, "bytes", new byte[] {1, 2},
            "boolean", true, "char", 'c', "byte", (byte) -1, "short", (short) 300, "float", 0.25f));
        MapMessage map = assertInstanceOf(MapMessage.class, receive(consumer));
        assertEquals("t", map.getString("text"));
        assertEquals(7, map.getObject("int"));
        assertEquals(1L << 40, map.getObject("long"));
        assertEquals(1.5, map.getObject("double"));
        assertArrayEquals(new byte[] {1, 2}, map.getBytes("bytes"));
        assertEquals(true, map.getObject("boolean"));
        assertEquals('c', map.getObject("char"));
        assertEquals((byte) -1, map.getObject("byte"));
        assertEquals((short) 300, map.getObject("short"));
        assertEquals(0.25f, map.getObject("float"));
        producer.send(queue, new ArrayList<>(List.of("an", "object", 3)));
        ObjectMessage object = assertInstanceOf(ObjectMessage.class, receive(consumer));
        assertEquals(List.of("an", "object", 3), object.getObject());
        StreamMessage stream = context.createStreamMessage();
        stream.writeInt(1);
        stream.writeString("two");
        stream.writeBytes(new byte[] {3});
        stream.writeChar('4');
        producer.send(queue, stream);
        StreamMessage gotStream = assertInstanceOf(StreamMessage.class, receive(consumer));
        assertEquals(1, gotStream.readInt());
        assertEquals("two", gotStream.readString());
        assertArrayEquals(new byte[] {3}, (byte[]) gotStream.readObject());
        assertEquals('4', gotStream.readChar());
        producer.send(queue, context.createMessage());
        Message plain = receive(consumer);
        assertFalse(plain instanceof TextMessage || plain instanceof BytesMessage);
        producer.send(queue, (String) null);
        assertNull(assertInstanceOf(TextMessage.class, receive(consumer)).getText());
    }

    /** An object whose body is an AMQP value, and no serialized Java. */
    @Test
    void s382_objects_as_values_of_amqp() throws Exception {
        JMSContext context = context();
        Queue queue = context.createQueue("s382b");
        ObjectMessage message = context.createObjectMessage(new ArrayList<>(List.of("a", 1L, true)));
        message.setBooleanProperty("JMS_AMQP_TYPED_ENCODING", true);
        context.createProducer().send(queue, message);
        ObjectMessage received = (ObjectMessage) receive(context.createConsumer(queue));
        assertEquals(List.of("a", 1L, true), received.getObject());
    }

    @Test
    void s383_headers_and_properties_of_every_type() throws Exception {
        JMSContext context = context();
        Queue queue = context.createQueue("s383");
        TextMessage sent = context.createTextMessage("x");
        sent.setJMSCorrelationID("correlated");
        sent.setJMSType("a type");
        sent.setJMSReplyTo(context.createQueue("s383b"));
        sent.setStringProperty("JMSXGroupID", "group");
        sent.setIntProperty("JMSXGroupSeq", 5);
        sent.setBooleanProperty("boolean", true);
        sent.setByteProperty("byte", (byte) -3);
        sent.setShortProperty("short", (short) 400);
        sent.setIntProperty("int", Integer.MIN_VALUE);
        sent.setLongProperty("long", Long.MAX_VALUE);
        sent.setFloatProperty("float", 1.25f);
        sent.setDoubleProperty("double", Math.PI);
        sent.setStringProperty("string", "文");
        sent.setObjectProperty("null", null);
        context.createProducer().setPriority(7).setDeliveryMode(DeliveryMode.NON_PERSISTENT).send(queue, sent);

        Message received = receive(context.createConsumer(queue));
        assertEquals("correlated", received.getJMSCorrelationID());
        assertEquals("a type", received.getJMSType());
        assertEquals(context.createQueue("s383b"), received.getJMSReplyTo());
        assertEquals("group", received.getStringProperty("JMSXGroupID"));
        assertEquals(5, received.getIntProperty("JMSXGroupSeq"));
        assertEquals(7, received.getJMSPriority());
        assertEquals(DeliveryMode.NON_PERSISTENT, received.getJMSDeliveryMode());
        assertEquals(true, received.getObjectProperty("boolean"));
        assertEquals((byte) -3, received.getObjectProperty("byte"));
        assertEquals((short) 400, received.getObjectProperty("short"));
        assertEquals(Integer.MIN_VALUE, received.getObjectProperty("int"));
        assertEquals(Long.MAX_VALUE, received.getObjectProperty("long"));
        assertEquals(1.25f, received.getObjectProperty("float"));
        assertEquals(Math.PI, received.getObjectProperty("double"));
        assertEquals("文", received.getObjectProperty("string"));
        assertTrue(received.propertyExists("null"));
        assertNull(received.getObjectProperty("null"));
    }

    /** An answer goes to the queue that the question names, with its id. */
    @Test
    void s383_a_request_and_its_answer() throws Exception {
        JMSContext asking = context();
        JMSContext answering = context();
        Queue questions = asking.createQueue("s383c");
        JMSConsumer answers = asking.createConsumer(asking.createQueue("s383d"));
        TextMessage question = asking.createTextMessage("question");
        question.setJMSReplyTo(asking.createQueue("s383d"));
        asking.createProducer().send(questions, question);
        Message asked = receive(answering.createConsumer(questions));
        answering.createProducer().setJMSCorrelationID(asked.getJMSMessageID())
            .send(asked.getJMSReplyTo(), "answer to " + text(asked));
        Message answer = receive(answers);
        assertEquals("answer to question", text(answer));
        assertEquals(question.getJMSMessageID(), answer.getJMSCorrelationID());
    }

    @Test
    void s384_expired_messages_are_dead_letters() throws Exception {
        JMSContext context = context();
        Queue queue = context.createQueue("s384");
        context.createProducer().setTimeToLive(60_000).send(queue, "long");
        TextMessage brief = context.createTextMessage("brief");
        context.createProducer().setTimeToLive(1000).send(queue, brief);
        assertTrue(brief.getJMSExpiration() > 0);
        // By itself the client would hide a message from its user that has expired, were it a dead letter.
        JMSContext later = context("jms.localMessageExpiry=false");
        JMSConsumer dead = later.createConsumer(later.createQueue("s384/$DeadLetterQueue"));
        Message letter = receive(dead);
        assertEquals("brief", text(letter));
        assertEquals("TTLExpiredException", letter.getStringProperty("DeadLetterReason"));
        Message there = receive(context.createConsumer(queue));
        assertEquals("long", text(there));
        assertTrue(Math.abs(there.getJMSExpiration() - there.getJMSTimestamp() - 60_000) < 1000);
    }

    @Test
    void s385_what_is_not_acknowledged_comes_again() throws Exception {
        sendNumbered("s385", 3);
        JMSContext context = context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = context.createConsumer(context.createQueue("s385"));
        assertEquals(texts(1, 3), texts(consumer, 3));
        context.recover();
        Message first = receive(consumer);
        assertEquals("1", text(first));
        assertTrue(first.getJMSRedelivered());
        assertEquals(2, deliveries(first));
        assertEquals(texts(2, 3), texts(consumer, 2));
        // One acknowledgement is for all that the session has received.
        first.acknowledge();
        context.close();
        isEmpty("s385");
    }

    /**
     * Closed without an acknowledgement, a session abandons its messages. They may have come to it again before it was
     * gone: then others get them when the locks end.
     */
    @Test
    void s385_a_closed_session_leaves_its_messages_to_others() throws Exception {
        sendNumbered("s385b", 2);
        JMSContext first = context(JMSContext.CLIENT_ACKNOWLEDGE);
        assertEquals(texts(1, 2), texts(first.createConsumer(first.createQueue("s385b")), 2));
        first.close();
        JMSContext second = context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = second.createConsumer(second.createQueue("s385b"));
        List<Message> messages = List.of(receive(consumer), receive(consumer));
        assertTexts(texts(1, 2), messages);
        for (Message message : messages) {
            assertTrue(message.getJMSRedelivered());
            assertTrue(deliveries(message) >= 2);
        }
        messages.get(1).acknowledge();
        second.close();
        isEmpty("s385b");
    }

    @Test
    void s385_automatic_and_lazy_acknowledgements() throws Exception {
        for (int mode : new int[] {JMSContext.AUTO_ACKNOWLEDGE, JMSContext.DUPS_OK_ACKNOWLEDGE}) {
            sendNumbered("s385c", 50);
            JMSContext context = context(mode);
            JMSConsumer consumer = context.createConsumer(context.createQueue("s385c"));
            assertEquals(texts(1, 50), texts(consumer, 50));
            context.close();
            isEmpty("s385c");
        }
    }

    /** The outcomes that the service documents for the numbers of this client. */
    @Test
    void s386_every_outcome() throws Exception {
        sendNumbered("s386", 5);
        JMSContext context = context(101 /* INDIVIDUAL_ACKNOWLEDGE */);
        Queue queue = context.createQueue("s386");
        JMSConsumer consumer = context.createConsumer(queue);
        List<Message> messages = new ArrayList<>();
        for (int outcome = 1; outcome <= 5; outcome += 1) {
            Message message = receive(consumer);
            message.setIntProperty("JMS_AMQP_ACK_TYPE", outcome);
            messages.add(message);
        }
        for (Message message : messages) {
            message.acknowledge();
        }
        // Accepted is gone, rejected is a dead letter, undeliverable is deferred; released counts nothing.
        Message released = receive(consumer);
        Message abandoned = receive(consumer);
        if (text(released).equals("4")) {
            Message other = released;
            released = abandoned;
            abandoned = other;
        }
        assertEquals("3", text(released));
        assertEquals(1, deliveries(released));
        assertEquals("4", text(abandoned));
        assertEquals(2, deliveries(abandoned));
        released.acknowledge();
        abandoned.acknowledge();
        receiveNothing(consumer);
        Message dead = receive(context.createConsumer(context.createQueue("s386/$DeadLetterQueue")));
        assertEquals("2", text(dead));
        dead.acknowledge();
    }

    @Test
    void s387_sends_and_receives_of_one_transaction() throws Exception {
        sendNumbered("s387", 2);
        JMSContext context = context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer in = context.createConsumer(context.createQueue("s387"));
        Queue out = context.createQueue("s387b");
        JMSContext watching = context();
        JMSConsumer watcher = watching.createConsumer(watching.createQueue("s387b"));

        assertEquals(texts(1, 2), texts(in, 2));
        context.createProducer().send(out, "rolled back");
        receiveNothing(watcher);
        context.rollback();
        receiveNothing(watcher);
        Message first = receive(in);
        assertEquals("1", text(first));
        assertTrue(first.getJMSRedelivered());
        assertEquals("2", text(receive(in)));
        context.createProducer().send(out, "a");
        context.createProducer().send(out, "b");
        context.commit();
        assertEquals(List.of("a", "b"), texts(watcher, 2));
        context.close();
        isEmpty("s387");
    }

    /** What a transaction that nobody ended has done is undone. */
    @Test
    void s387_a_closed_session_rolls_back() throws Exception {
        sendNumbered("s387c", 1);
        JMSContext context = context(JMSContext.SESSION_TRANSACTED);
        assertEquals("1", text(receive(context.createConsumer(context.createQueue("s387c")))));
        context.createProducer().send(context.createQueue("s387d"), "never");
        context.close();
        JMSContext after = context();
        Message again = receive(after.createConsumer(after.createQueue("s387c")));
        assertEquals("1", text(again));
        isEmpty("s387d");
    }

    /** A hundred operations in one transaction; the next is one too many. */
    @Test
    void s387_large_transactions() throws Exception {
        JMSContext context = context(JMSContext.SESSION_TRANSACTED);
        Queue queue = context.createQueue("s387e");
        for (int n = 1; n <= 100; n += 1) {
            context.createProducer().send(queue, String.valueOf(n));
        }
        context.commit();
        JMSConsumer consumer = context.createConsumer(queue);
        assertEquals(texts(1, 100), texts(consumer, 100));
        context.commit();
        context.close();
        isEmpty("s387e");
    }

    @Test
    void s388_delivery_delay() throws Exception {
        JMSContext context = context();
        Queue queue = context.createQueue("s388");
        long begin = System.currentTimeMillis();
        TextMessage later = context.createTextMessage("later");
        context.createProducer().setDeliveryDelay(3000).send(queue, later);
        assertTrue(later.getJMSDeliveryTime() >= begin + 3000);
        context.createProducer().send(queue, "now");
        JMSConsumer consumer = context.createConsumer(queue);
        assertEquals("now", text(receive(consumer)));
        receiveNothing(consumer, 1500);
        Message received = receive(consumer);
        assertEquals("later", text(received));
        assertTrue(System.currentTimeMillis() >= begin + 2900);
        assertTrue(System.currentTimeMillis() <= begin + 6000);
        assertEquals(later.getJMSDeliveryTime(), received.getJMSDeliveryTime());
    }

    @Test
    void s390_a_consumer_without_prefetch_takes_what_it_asks_for() throws Exception {
        sendNumbered("s390", 3);
        JMSContext first = context("jms.prefetchPolicy.all=0");
        JMSContext second = context("jms.prefetchPolicy.all=0");
        JMSConsumer one = first.createConsumer(first.createQueue("s390"));
        JMSConsumer two = second.createConsumer(second.createQueue("s390"));
        assertEquals("1", text(receive(one)));
        assertEquals("2", text(receive(two)));
        assertEquals("3", text(receive(one)));
        assertNull(two.receiveNoWait());
        CompletableFuture<String> waiting = CompletableFuture.supplyAsync(() -> two.receiveBody(String.class));
        sendNumbered("s390", 1);
        assertEquals("1", waiting.get(DEADLINE.toSeconds(), TimeUnit.SECONDS));
        receiveNothing(one);
    }

    @Test
    void s390_a_long_prefetch_and_a_listener() throws Exception {
        try (JMSContext sending = factory("jms.forceAsyncSend=true").createContext()) {
            JMSProducer producer = sending.createProducer();
            Queue queue = sending.createQueue("s390b");
            for (int n = 1; n <= 2500; n += 1) {
                producer.send(queue, String.valueOf(n));
            }
        }
        JMSContext context = context("jms.prefetchPolicy.all=1000");
        CountDownLatch all = new CountDownLatch(2500);
        ConcurrentLinkedQueue<String> texts = new ConcurrentLinkedQueue<>();
        context.setAutoStart(false);
        JMSConsumer consumer = context.createConsumer(context.createQueue("s390b"));
        consumer.setMessageListener(message -> {
            try {
                texts.add(text(message));
            } catch (JMSException error) {
                texts.add(error.toString());
            }
            all.countDown();
        });
        context.start();
        assertTrue(all.await(60, TimeUnit.SECONDS), () -> all.getCount() + " are missing");
        assertEquals(texts(1, 2500), List.copyOf(texts));
        context.close();
        isEmpty("s390b");
    }

    @Test
    void s395_what_is_refused() throws Exception {
        JMSContext context = context();
        // As large as the queue takes; larger.
        assertThrows(JMSRuntimeException.class,
            () -> context.createProducer().send(context.createQueue("s395"), new byte[100 * 1024]));
        context.createProducer().send(context.createQueue("s395"), new byte[10 * 1024]);
        Message small = receive(context.createConsumer(context.createQueue("s395")));
        assertEquals(10 * 1024, small.getBody(byte[].class).length);
        // Disabled; with sessions, which JMS does not receive from.
        assertThrows(JMSRuntimeException.class, () -> context.createProducer().send(context.createQueue("s395b"), "1"));
        assertThrows(JMSRuntimeException.class, () -> context.createConsumer(context.createQueue("s395b")));
        JMSRuntimeException sessions = assertThrows(JMSRuntimeException.class,
            () -> context.createConsumer(context.createQueue("s395c")));
        assertTrue(sessions.getMessage().contains("requires sessions"), sessions::getMessage);
        // A message of a group is one of a session: it can be sent.
        context.createProducer().setProperty("JMSXGroupID", "x").send(context.createQueue("s395c"), "1");
    }
}

package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;

class Forwarding extends Scenarios {
    private static final DeadLetterOptions WHY =
        new DeadLetterOptions().setDeadLetterReason("why").setDeadLetterErrorDescription("because");

    private static List<Long> origins(List<ServiceBusReceivedMessage> messages) {
        return messages.stream().map(ServiceBusReceivedMessage::getEnqueuedSequenceNumber).toList();
    }

    @Test
    void s191_what_is_forwarded_has_the_number_of_its_place_and_that_of_its_origin() {
        OffsetDateTime before = in(Duration.ZERO);
        send("s191b", message(1), message(2));
        send("s191", message(3), message(4));
        client.sender("s191").sendMessages(List.of(message(5)));
        List<ServiceBusReceivedMessage> messages = receive(client.receiver("s191b"), 5);
        assertEquals(texts(1, 5), bodies(messages));
        assertEquals(range(1, 5), numbers(messages));
        assertEquals(range(1, 3), origins(messages).subList(2, 5));
        messages.forEach(message -> assertNear(message.getEnqueuedTime(), before, Duration.ofSeconds(5)));
    }

    @Test
    void s192_the_number_of_the_origin_is_that_of_the_first_queue() {
        send("s192c", message("c"));
        send("s192b", message("b"));
        send("s192", message("a"));
        List<ServiceBusReceivedMessage> messages = receive(client.receiver("s192c"), 3);
        assertEquals(List.of("c", "b", "a"), bodies(messages));
        assertEquals(range(1, 3), numbers(messages));
        assertEquals(1, origins(messages).get(2));
    }

    @Test
    void s193_four_times_and_no_more() {
        send("s193", message("five"));
        send("s193b", message("four"));
        assertEquals(List.of("four"), bodies(receive(client.receiver("s193f"), 1)));
        ServiceBusReceivedMessage letter = receiveOne(client.deadLetters("s193e"));
        assertEquals("five", letter.getBody().toString());
        assertEquals("MaxTransferHopCountExceeded", letter.getDeadLetterReason());
    }

    @Test
    void s194_a_queue_that_forwards_is_not_received_from() {
        ServiceBusReceiverClient receiver = client.receiver("s194");
        refuses("", () -> bodies(receiver.receiveMessages(1, DEADLINE)));
        refuses("", () -> bodies(client.receiver("s194").peekMessages(1)));
    }

    @Test
    void s195_what_cannot_be_forwarded_is_a_dead_letter() {
        send("s195", message(1));
        ServiceBusReceiverClient receiver = client.deadLetters("s195");
        ServiceBusReceivedMessage letter = receiveOne(receiver);
        assertEquals("1", letter.getBody().toString());
        assertFalse(letter.getDeadLetterReason().isEmpty());
        receiver.complete(letter);
        assertEquals(List.of(), peekAll(receiver));
    }

    @Test
    void s196_what_does_not_fit_is_a_dead_letter() {
        ServiceBusSenderClient sender = client.sender("s196");
        for (int n = 1; n <= 15; n += 1) {
            sender.sendMessage(ofSize(100 * 1024).setSubject(String.valueOf(n)));
        }
        List<ServiceBusReceivedMessage> there = peekAll(client.receiver("s196b"));
        List<ServiceBusReceivedMessage> dead = peekAll(client.deadLetters("s196"));
        assertTrue(!there.isEmpty() && !dead.isEmpty(), () -> there.size() + " and " + dead.size());
        List<ServiceBusReceivedMessage> all = new ArrayList<>(there);
        all.addAll(dead);
        assertEquals(range(1, 15), all.stream().map(ServiceBusReceivedMessage::getSubject).map(Long::valueOf).sorted().toList());
    }

    @Test
    void s197_a_subscription_forwards_what_its_rules_take() {
        client.topicSender("s197").sendMessages(List.of(with("n", 1), with("n", 2), with("n", 3)));
        List<ServiceBusReceivedMessage> messages = receive(client.receiver("s197b"), 2);
        assertEquals(List.of("2", "3"), bodies(messages));
        assertEquals(range(1, 2), numbers(messages));
        assertEquals(range(2, 3), origins(messages));
    }

    @Test
    void s198_a_queue_forwards_to_a_topic() {
        send("s198", with("color", "red"), with("color", "blue"));
        assertEquals(List.of("red", "blue"), bodies(receive(client.receiver("s198b/all"), 2)));
        assertEquals(List.of("red"), bodies(peekAll(client.receiver("s198b/red"))));
    }

    @Test
    void s199_dead_letters_are_forwarded_and_say_where_they_come_from() {
        client.sender("s199").sendMessages(List.of(message("dead"), message("abandoned")));
        ServiceBusReceiverClient receiver = client.receiver("s199");
        List<ServiceBusReceivedMessage> messages = receive(receiver, 2);
        receiver.deadLetter(messages.get(0), WHY);
        receiver.abandon(messages.get(1));
        send("s199", message("expired").setTimeToLive(Duration.ofSeconds(1)));
        List<ServiceBusReceivedMessage> letters = receive(client.receiver("s199b"), 3);
        assertEquals(List.of("dead", "abandoned", "expired"), bodies(letters));
        assertEquals(List.of("why", "MaxDeliveryCountExceeded", "TTLExpiredException"),
            letters.stream().map(ServiceBusReceivedMessage::getDeadLetterReason).toList());
        assertEquals(range(1, 3), numbers(letters));
        letters.forEach(letter -> assertEquals("s199", letter.getDeadLetterSource()));
    }

    @Test
    void s200_dead_letters_of_a_subscription_are_forwarded() {
        client.topicSender("s200").sendMessage(message(1));
        ServiceBusReceiverClient receiver = client.receiver("s200/a");
        receiver.deadLetter(receiveOne(receiver), WHY);
        ServiceBusReceivedMessage letter = receiveOne(client.receiver("s200b"));
        assertEquals("1", letter.getBody().toString());
        assertEquals("why", letter.getDeadLetterReason());
        assertTrue(letter.getDeadLetterSource().toLowerCase(Locale.ROOT).contains("s200"));
    }

    @Test
    void s201_a_scheduled_message_is_forwarded_when_it_is_due() {
        ServiceBusSenderClient sender = client.sender("s201");
        OffsetDateTime time = in(Duration.ofSeconds(2));
        sender.scheduleMessage(message("due"), time);
        sender.cancelScheduledMessage(sender.scheduleMessage(message("cancelled"), time));
        ServiceBusReceiverClient receiver = client.receiver("s201b");
        assertEquals(List.of(), peekAll(receiver));
        assertEquals(List.of("due"), bodies(receive(receiver, 1)));
        assertFalse(OffsetDateTime.now().isBefore(time));
        receiveNothing(receiver);
    }

    @Test
    void s202_what_is_forwarded_needs_a_session_where_sessions_are_required() {
        send("s202", inSession("x", "with"), message("without"));
        assertEquals(List.of("with"), bodies(receive(client.session("s202b", "x"), 1)));
        assertEquals(List.of("without"), bodies(peekAll(client.deadLetters("s202"))));
    }

    @Test
    void s203_what_is_forwarded_may_be_a_duplicate() {
        for (String queue : List.of("s203", "s203", "s203b")) {
            send(queue, message(queue).setMessageId("one"));
        }
        assertEquals(List.of("s203"), bodies(peekAll(client.receiver("s203b"))));
    }
}

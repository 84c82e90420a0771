package interop;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.mapping;
import static java.util.stream.Collectors.toList;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusRuleManagerClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.AccessRights;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SharedAccessAuthorizationRule;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.DeferOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** There is one broker to kill: nothing else runs meanwhile. */
@Isolated
class Restarts extends Scenarios {
    @Test
    void s72_s73_s74_s75_what_was_acknowledged_survives_the_broker() throws Exception {
        // Clients that outlive the broker (S74).
        ServiceBusSenderClient sender = client.sender("s74");
        ServiceBusReceiverClient receiver = client.receiver("s74");
        sender.sendMessage(message("before"));
        receiver.complete(receiveOne(receiver));

        try (Connection before = new Connection()) {
            before.sender("s72").sendMessages(numbered(5));
            ServiceBusReceiverClient settling = before.receiver("s72");
            List<ServiceBusReceivedMessage> messages = receive(settling, 3);
            settling.complete(messages.get(0));
            settling.defer(messages.get(1), new DeferOptions().setPropertiesToModify(Map.of("attempt", 1)));
            settling.deadLetter(messages.get(2), new DeadLetterOptions().setDeadLetterReason("why"));
            before.sender("s72").scheduleMessage(message("later"), in(Duration.ofHours(1)));
            before.sender("s73").scheduleMessage(message("due"), in(Duration.ofSeconds(2)));
            before.sender("s75").sendMessage(message("abandoned"));
            ServiceBusReceiverClient abandoning = before.receiver("s75");
            abandoning.abandon(receiveOne(abandoning));
        }
        receiveNothing(receiver, Duration.ofSeconds(2));
        Endpoint.open().control("kill");
        Endpoint.open().control("start");

        try (Connection after = new Connection()) {
            ServiceBusReceiverClient looking = after.receiver("s72");
            List<ServiceBusReceivedMessage> seen = peekAll(looking);
            assertEquals(List.of(2L, 4L, 5L, 6L), numbers(seen));
            assertEquals(List.of("2", "4", "5", "later"), bodies(seen));
            assertEquals(
                List.of(ServiceBusMessageState.DEFERRED, ServiceBusMessageState.ACTIVE, ServiceBusMessageState.ACTIVE,
                    ServiceBusMessageState.SCHEDULED),
                seen.stream().map(ServiceBusReceivedMessage::getState).toList());
            assertEquals(1, looking.receiveDeferredMessage(2).getApplicationProperties().get("attempt"));
            ServiceBusReceivedMessage letter = receiveOne(after.deadLetters("s72"));
            assertEquals("3", letter.getBody().toString());
            assertEquals("why", letter.getDeadLetterReason());
            after.sender("s72").sendMessage(message("next"));
            assertEquals(List.of(4L, 5L, 7L), numbers(receive(looking, 3)));
            assertEquals(List.of("due"), bodies(receive(after.receiver("s73"), 1, Duration.ofSeconds(3))));
        }
        sender.sendMessage(message("after"));
        assertEquals("after", receiveOne(receiver).getBody().toString());

        // In good order, with clients connected (S75): the control fails when the broker's exit code is not 0.
        Endpoint.open().control("stop");
        Endpoint.open().control("start");
        try (Connection after = new Connection()) {
            ServiceBusReceivedMessage message = receiveOne(after.receiver("s75"));
            assertEquals("abandoned", message.getBody().toString());
            assertEquals(1, message.getDeliveryCount());
        }
    }

    @Test
    void s138_s158_s170_s188_s217_sessions_topics_rules_duplicates_and_partitions_survive() throws Exception {
        try (Connection before = new Connection()) {
            beforeTheEnd(before);
        }
        Endpoint.open().control("kill");
        Endpoint.open().control("start");
        sessionsAreThere();
        topicsAndRulesAreThere();

        client.sender("s188").sendMessages(List.of(message(2).setMessageId("one"), message(3).setMessageId("two")));
        assertEquals(List.of("1", "3"), bodies(peekAll(client.receiver("s188"))));

        // Of each partition the first was completed.
        sendKeyed(client, 51, 60);
        Map<Long, List<Long>> partitions = peekAll(client.receiver("s217")).stream().map(Restarts::number)
            .collect(groupingBy(number -> number >>> 48, mapping(Restarts::ordinal, toList())));
        partitions.values().forEach(each -> assertEquals(range(2, each.size() + 1), each));
        assertEquals(60, partitions.values().stream().mapToInt(each -> each.size() + 1).sum());
    }

    @Test
    @Tag("secured")
    void s290_what_administrators_did_survives_a_kill() throws Exception {
        ServiceBusAdministrationClient before = Endpoint.administrator();
        SharedAccessAuthorizationRule speaker =
            new SharedAccessAuthorizationRule("speaker", List.of(AccessRights.SEND));
        CreateQueueOptions options = new CreateQueueOptions()
            .setLockDuration(Duration.ofSeconds(45)).setSessionRequired(true).setUserMetadata("mine");
        options.getAuthorizationRules().add(speaker);
        Map<String, Object> queue =
            Described.of(before.updateQueue(before.createQueue("s290", options).setMaxDeliveryCount(3)));
        OffsetDateTime created = before.getQueueRuntimeProperties("s290").getCreatedAt();
        before.createTopic("s290t");
        CreateRuleOptions one = new CreateRuleOptions(new SqlRuleFilter("n = '1'"))
            .setAction(new SqlRuleAction("SET seen = TRUE"));
        before.createSubscription("s290t", "a", "one", new CreateSubscriptionOptions(), one);
        Map<String, Object> subscription = Described.of(before.getSubscription("s290t", "a"));
        before.createQueue("s290-gone");
        before.createSubscription("s290t", "b", new CreateSubscriptionOptions().setForwardTo("s290-gone"));
        before.deleteQueue("s290-gone");
        try (Connection connection = new Connection(Endpoint.keyed(Endpoint.ROOT, Endpoint.secured().key()), DEADLINE)) {
            connection.sender("s290").sendMessage(inSession("x", "1"));
        }
        Endpoint.secured().control("kill");
        Endpoint.secured().control("start");

        ServiceBusAdministrationClient after = Endpoint.administrator();
        assertEquals(queue, Described.of(after.getQueue("s290")));
        assertEquals(created, after.getQueueRuntimeProperties("s290").getCreatedAt());
        assertEquals(subscription, Described.of(after.getSubscription("s290t", "a")));
        assertEquals(Map.of("one", "n = '1' {}; SET seen = TRUE {}"), RuleAdministration.told(after, "s290t", "a"));
        assertFalse(after.getQueueExists("s290-gone"));
        // What it forwarded to is gone: its messages go nowhere, and the broker starts all the same.
        assertTrue(after.getSubscriptionExists("s290t", "b"));
        Connection reader = connect(Endpoint.keyed(Endpoint.ROOT, Endpoint.secured().key()));
        assertEquals(List.of("1"), bodies(receive(reader.session("s290", "x"), 1)));
        connect(Endpoint.keyed("speaker", speaker.getPrimaryKey())).sender("s290").sendMessage(inSession("y", "2"));
        assertEquals(List.of("2"), bodies(receive(reader.session("s290", "y"), 1)));
        reader.topicSender("s290t").sendMessages(List.of(with("n", "2"), with("n", "1")));
        assertEquals(List.of("1"), bodies(peekAll(reader.receiver("s290t/a"))));
        assertEquals(List.of("2", "1"), bodies(receive(reader.deadLetters("s290t/b"), 2)));
    }

    private static long number(ServiceBusReceivedMessage message) {
        return message.getSequenceNumber();
    }

    /** A number within its partition. */
    private static long ordinal(long number) {
        return number & (1L << 48) - 1;
    }

    private static void sendKeyed(Connection connection, int first, int last) {
        ServiceBusSenderClient sender = connection.sender("s217");
        for (int body = first; body <= last; body += 1) {
            sender.sendMessage(message(body).setPartitionKey("key " + body % 10));
        }
    }

    private static void beforeTheEnd(Connection before) {
        before.sender("s138").sendMessages(List.of(
            inSession("x", "deferred"), inSession("x", "left"), inSession("x", "there"), inSession("z", "other")));
        ServiceBusReceiverClient x = before.session("s138", "x");
        List<ServiceBusReceivedMessage> received = receive(x, 2);
        x.defer(received.get(0));
        x.setSessionState(new byte[] {1});
        before.session("s138", "y").setSessionState(new byte[] {2});

        before.topicSender("s158").sendMessages(numbered(10));
        ServiceBusReceiverClient a = before.receiver("s158/a");
        List<ServiceBusReceivedMessage> copies = receive(a, 5);
        completeAll(a, copies.subList(0, 3));
        a.defer(copies.get(3));
        a.deadLetter(copies.get(4));
        before.topicSender("s158").scheduleMessage(message("scheduled"), in(Duration.ofSeconds(3)));

        ServiceBusRuleManagerClient rules = before.rules("s170/a");
        rules.deleteRule("$Default");
        rules.createRule("one", new CreateRuleOptions(new SqlRuleFilter("n = 1")));

        before.sender("s188").sendMessage(message(1).setMessageId("one"));

        sendKeyed(before, 1, 50);
        ServiceBusReceiverClient completing = before.receiver("s217");
        receive(completing, 50).stream().filter(each -> ordinal(number(each)) == 1).forEach(completing::complete);
    }

    private void sessionsAreThere() {
        ServiceBusReceiverClient x = client.session("s138", "x");
        assertArrayEquals(new byte[] {1}, x.getSessionState());
        assertArrayEquals(new byte[] {2}, client.session("s138", "y").getSessionState());
        List<ServiceBusReceivedMessage> messages = receive(x, 2);
        assertEquals(List.of("left", "there"), bodies(messages));
        assertEquals(range(2, 3), numbers(messages));
        assertEquals("deferred", x.receiveDeferredMessage(1).getBody().toString());
        assertEquals("z", client.nextSession("s138").getSessionId());
        client.sender("s138").sendMessage(inSession("x", "next"));
        assertEquals(5, receiveOne(x).getSequenceNumber());
    }

    private void topicsAndRulesAreThere() {
        ServiceBusReceiverClient a = client.receiver("s158/a");
        List<ServiceBusReceivedMessage> messages = receive(a, 6);
        assertEquals(List.of("6", "7", "8", "9", "10", "scheduled"), bodies(messages));
        assertEquals(range(6, 11), numbers(messages));
        assertEquals(range(6, 10), messages.subList(0, 5).stream()
            .map(ServiceBusReceivedMessage::getEnqueuedSequenceNumber).toList());
        assertEquals("4", a.receiveDeferredMessage(4).getBody().toString());
        assertEquals(List.of("5"), bodies(receive(client.deadLetters("s158/a"), 1)));

        List<RuleProperties> rules = client.rules("s170/a").listRules().stream().toList();
        assertEquals(List.of("one"), rules.stream().map(RuleProperties::getName).toList());
        client.topicSender("s170").sendMessages(List.of(with("n", 2), with("n", 1)));
        assertEquals(List.of("1"), bodies(receive(client.receiver("s170/a"), 1)));
        assertEquals(List.of("1"), bodies(peekAll(client.receiver("s170/a"))));
    }

    /** With clients whose own reconnection is to bring them back: the broker force-detaches their links as it ends. */
    @Test
    void s308_a_sender_and_a_receiver_survive_a_stop_in_good_order() throws Exception {
        Connection connection = connect();
        connection.builder().retryOptions(new AmqpRetryOptions().setDelay(Duration.ofMillis(200)));
        ServiceBusSenderClient sender = connection.sender("s308");
        ServiceBusReceiverClient receiver = connection.receiver("s308");
        sender.sendMessage(message("before"));
        receiver.complete(receiveOne(receiver));
        Endpoint.open().control("stop");
        Endpoint.open().control("start");
        Reconnecting.sendInTime(sender, message("after"));
        ServiceBusReceivedMessage after = receiveOne(receiver);
        assertEquals("after", after.getBody().toString());
        receiver.complete(after);
        receiveNothing(receiver);
        assertEquals(List.of(), peekAll(connection.receiver("s308")));
    }
}

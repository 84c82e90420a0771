package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED;
import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND;
import static com.azure.messaging.servicebus.administration.models.AccessRights.LISTEN;
import static com.azure.messaging.servicebus.administration.models.AccessRights.MANAGE;
import static com.azure.messaging.servicebus.administration.models.AccessRights.SEND;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusServiceVersion;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationAsyncClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.CreateTopicOptions;
import com.azure.messaging.servicebus.administration.models.EntityStatus;
import com.azure.messaging.servicebus.administration.models.FalseRuleFilter;
import com.azure.messaging.servicebus.administration.models.MessagingSku;
import com.azure.messaging.servicebus.administration.models.NamespaceProperties;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.QueueRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.SharedAccessAuthorizationRule;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.SubscriptionProperties;
import com.azure.messaging.servicebus.administration.models.SubscriptionRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.TopicProperties;
import com.azure.messaging.servicebus.administration.models.TopicRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.TrueRuleFilter;
import com.azure.messaging.servicebus.models.DeferOptions;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Queues, topics and subscriptions under an administrator's hand, at the secured broker; rules: {@link RuleAdministration}. */
@Tag("secured")
class Administration extends Scenarios {
    /** The longest duration that the service knows. */
    private static final Duration FOREVER = Duration.parse("P10675199DT2H48M5.4775807S");

    private final ServiceBusAdministrationClient administrator = Endpoint.administrator();
    /** The same in the SDK's other way. */
    private final ServiceBusAdministrationAsyncClient asynchronous =
        Endpoint.administrators(Endpoint.keyed(Endpoint.ROOT, Endpoint.secured().key())).buildAsyncClient();
    private final Connection secured = connect(Endpoint.keyed(Endpoint.ROOT, Endpoint.secured().key()));

    @Test
    void s271_a_queue_has_the_properties_that_it_was_made_with() {
        CreateQueueOptions options = new CreateQueueOptions()
            .setLockDuration(Duration.ofSeconds(45)).setMaxSizeInMegabytes(2048).setDuplicateDetectionRequired(true)
            .setSessionRequired(true).setDefaultMessageTimeToLive(Duration.parse("P1DT2H3M4.5S"))
            .setDeadLetteringOnMessageExpiration(true)
            .setDuplicateDetectionHistoryTimeWindow(Duration.ofMinutes(7)).setMaxDeliveryCount(7)
            .setBatchedOperationsEnabled(false).setStatus(EntityStatus.ACTIVE)
            .setAutoDeleteOnIdle(Duration.ofDays(1)).setPartitioningEnabled(false)
            .setUserMetadata("<mine> & \"ü\"").setMaxMessageSizeInKilobytes(512);
        options.getAuthorizationRules().addAll(List.of(
            new SharedAccessAuthorizationRule("speaker", List.of(SEND)),
            new SharedAccessAuthorizationRule("all", List.of(MANAGE, SEND, LISTEN))));
        for (QueueProperties each : List.of(
                administrator.createQueue("s271", options), administrator.getQueue("s271"))) {
            Described.same(options, each, Set.of(), Set.of("Name"));
            assertEquals("s271", each.getName());
            each.getAuthorizationRules().forEach(rule -> {
                // The times of a rule are the client's, and this SDK sends none.
                assertNull(rule.getCreatedAt());
                assertNull(rule.getModifiedAt());
            });
        }

        // What can be changed.
        QueueProperties changed = administrator.getQueue("s271")
            .setLockDuration(Duration.ofSeconds(10)).setMaxSizeInMegabytes(1024).setDefaultMessageTimeToLive(FOREVER)
            .setDeadLetteringOnMessageExpiration(false)
            .setDuplicateDetectionHistoryTimeWindow(Duration.ofMinutes(1)).setMaxDeliveryCount(3)
            .setBatchedOperationsEnabled(true).setAutoDeleteOnIdle(FOREVER).setUserMetadata("other")
            .setMaxMessageSizeInKilobytes(256).setStatus(EntityStatus.SEND_DISABLED);
        Map<String, Object> wanted = Described.of(changed);
        assertEquals(wanted, Described.of(administrator.updateQueue(changed)));
        assertEquals(wanted, Described.of(administrator.getQueue("s271")));
        fails(MESSAGING_ENTITY_DISABLED, () -> secured.sender("s271").sendMessage(inSession("x", "1")));
    }

    @Test
    void s272_a_queue_without_properties_has_the_services_defaults() {
        asynchronous.createQueue("S272").block(DEADLINE);
        QueueProperties found = asynchronous.getQueue("s272").block(DEADLINE);
        Described.same(new CreateQueueOptions(), found, Set.of(), Set.of("Name"), "MaxMessageSizeInKilobytes");
        // How large a message may be is the broker's to say.
        assertTrue(found.getMaxMessageSizeInKilobytes() > 0);
        assertEquals(FOREVER, found.getDefaultMessageTimeToLive());
        assertEquals(FOREVER, found.getAutoDeleteOnIdle());
        roundTrip(secured, "s272");
    }

    @Test
    void s273_a_topic_has_the_properties_that_it_was_made_with() {
        CreateTopicOptions options = new CreateTopicOptions()
            .setMaxSizeInMegabytes(2048).setDuplicateDetectionRequired(true)
            .setDefaultMessageTimeToLive(Duration.ofHours(1))
            .setDuplicateDetectionHistoryTimeWindow(Duration.ofSeconds(30)).setBatchedOperationsEnabled(false)
            .setStatus(EntityStatus.ACTIVE).setAutoDeleteOnIdle(Duration.ofMinutes(5)).setPartitioningEnabled(false)
            .setOrderingSupported(true).setUserMetadata("mine").setMaxMessageSizeInKilobytes(512);
        options.getAuthorizationRules().add(new SharedAccessAuthorizationRule("listener", List.of(LISTEN)));
        for (TopicProperties each : List.of(
                administrator.createTopic("s273", options), administrator.getTopic("s273"))) {
            // Locks and sessions are a subscription's, which the SDK does not send for a topic.
            Described.same(options, each,
                Set.of("LockDuration", "MaxDeliveryCount", "SessionRequired", "SupportOrdering"),
                Set.of("Name", "OrderingSupported"));
            assertEquals("s273", each.getName());
            assertTrue(each.isOrderingSupported());
        }
        TopicProperties changed = administrator.getTopic("s273").setDefaultMessageTimeToLive(Duration.ofHours(2))
            .setUserMetadata("other").setAutoDeleteOnIdle(FOREVER).setStatus(EntityStatus.DISABLED);
        Map<String, Object> wanted = Described.of(changed);
        assertEquals(wanted, Described.of(administrator.updateTopic(changed)));
        assertEquals(wanted, Described.of(administrator.getTopic("s273")));
        fails(MESSAGING_ENTITY_DISABLED, () -> secured.topicSender("s273").sendMessage(message(1)));
    }

    @Test
    void s274_a_subscription_has_the_properties_that_it_was_made_with() {
        administrator.createTopic("s274");
        CreateSubscriptionOptions options = new CreateSubscriptionOptions()
            .setLockDuration(Duration.ofSeconds(45)).setSessionRequired(true)
            .setDefaultMessageTimeToLive(Duration.ofHours(1)).setDeadLetteringOnMessageExpiration(true)
            .setEnableDeadLetteringOnFilterEvaluationExceptions(false).setMaxDeliveryCount(7)
            .setStatus(EntityStatus.ACTIVE).setAutoDeleteOnIdle(Duration.ofMinutes(5))
            .setBatchedOperationsEnabled(false).setUserMetadata("mine");
        CreateRuleOptions first = new CreateRuleOptions(new SqlRuleFilter("n = 1"))
            .setAction(new SqlRuleAction("SET seen = 'yes'"));
        for (SubscriptionProperties each : List.of(
                administrator.createSubscription("s274", "a", "first", options, first),
                administrator.getSubscription("s274", "a"))) {
            // The rule is there for itself.
            Described.same(options, each, Set.of("DefaultRule"), Set.of("TopicName", "SubscriptionName"));
            assertEquals("s274 a", each.getTopicName() + " " + each.getSubscriptionName());
        }
        assertEquals(Map.of("first", "n = 1 {}; SET seen = 'yes' {}"), RuleAdministration.told(administrator, "s274", "a"));

        SubscriptionProperties changed = administrator.getSubscription("s274", "a")
            .setLockDuration(Duration.ofSeconds(10)).setMaxDeliveryCount(1).setAutoDeleteOnIdle(FOREVER)
            .setDeadLetteringOnMessageExpiration(false).setEnableDeadLetteringOnFilterEvaluationExceptions(true)
            .setBatchedOperationsEnabled(true).setUserMetadata("other").setStatus(EntityStatus.RECEIVE_DISABLED)
            // The SDK sends no time to live with a change: the broker takes it for the service's default.
            .setDefaultMessageTimeToLive(FOREVER);
        Map<String, Object> wanted = Described.of(changed);
        assertEquals(wanted, Described.of(administrator.updateSubscription(changed)));
        assertEquals(wanted, Described.of(administrator.getSubscription("s274", "a")));

        SubscriptionProperties plain = administrator.createSubscription("s274", "plain");
        Described.same(new CreateSubscriptionOptions(), plain,
            Set.of("DefaultRule"), Set.of("TopicName", "SubscriptionName"));
        assertEquals(Map.of("$Default", "true"), RuleAdministration.told(administrator, "s274", "plain"));
    }

    @Test
    void s275_entities_are_listed_in_pages() {
        List<String> names = IntStream.range(0, 7).mapToObj(index -> "s275-" + index).toList();
        for (String name : names) {
            administrator.createQueue(name,
                new CreateQueueOptions().setMaxDeliveryCount(names.indexOf(name) + 1));
            administrator.createTopic("t" + name);
        }
        // Other scenarios make and delete queues meanwhile: these seven come, once each and in order.
        List<QueueProperties> queues =
            administrator.listQueues().stream().filter(each -> each.getName().startsWith("s275-")).toList();
        assertEquals(names, queues.stream().map(QueueProperties::getName).distinct().toList());
        queues.forEach(each -> assertEquals(names.indexOf(each.getName()) + 1, each.getMaxDeliveryCount()));
        List<String> topics = asynchronous.listTopics().map(TopicProperties::getName).collectList().block(DEADLINE);
        assertEquals(names.stream().map(name -> "t" + name).toList(),
            topics.stream().filter(name -> name.startsWith("ts275-")).distinct().toList());

        // Nothing else touches this topic: its pages are exact, of 100, which is the SDK's choice.
        List<String> subscriptions = IntStream.range(0, 203).mapToObj("%03d"::formatted).toList();
        subscriptions.forEach(name -> administrator.createSubscription("ts275-0", name));
        List<Integer> sizes = new ArrayList<>();
        List<String> found = new ArrayList<>();
        administrator.listSubscriptions("ts275-0").streamByPage().forEach(page -> {
            sizes.add((int) page.getElements().stream().count());
            page.getElements().forEach(each -> found.add(each.getTopicName() + " " + each.getSubscriptionName()));
        });
        assertEquals(List.of(100, 100, 3), sizes);
        assertEquals(subscriptions.stream().map(name -> "ts275-0 " + name).toList(), found);
        assertEquals(0, administrator.listSubscriptions("ts275-1").stream().count());
    }

    @Test
    void s278_counts_sizes_and_times_tell_what_is_there() {
        OffsetDateTime before = OffsetDateTime.now();
        administrator.createQueue("s278");
        QueueRuntimeProperties fresh = administrator.getQueueRuntimeProperties("s278");
        assertEquals("s278", fresh.getName());
        assertNear(fresh.getCreatedAt(), before, Duration.ofSeconds(10));
        assertNear(fresh.getUpdatedAt(), before, Duration.ofSeconds(10));
        assertEquals(List.of(0L, 0L), List.of(fresh.getSizeInBytes(), fresh.getTotalMessageCount()));

        ServiceBusSenderClient sender = secured.sender("s278");
        sender.sendMessages(numbered(6));
        sender.sendMessage(ofSize(100 * 1024));
        sender.scheduleMessages(numbered(2), in(Duration.ofHours(1))).forEach(Objects::requireNonNull);
        ServiceBusReceiverClient receiver = secured.receiver("s278");
        List<ServiceBusReceivedMessage> messages = receive(receiver, 4);
        receiver.complete(messages.get(0));
        receiver.deadLetter(messages.get(1));
        receiver.defer(messages.get(2), new DeferOptions());
        QueueRuntimeProperties counts = administrator.getQueueRuntimeProperties("s278");
        // One is locked, one deferred, three are free: all count as active.
        assertEquals(List.of(5, 1, 2, 0, 0), List.of(counts.getActiveMessageCount(), counts.getDeadLetterMessageCount(),
            counts.getScheduledMessageCount(), counts.getTransferMessageCount(),
            counts.getTransferDeadLetterMessageCount()));
        assertEquals(8, counts.getTotalMessageCount());
        assertTrue(counts.getSizeInBytes() > 100 * 1024 && counts.getSizeInBytes() < 110 * 1024);
        assertNear(counts.getAccessedAt(), in(Duration.ZERO), Duration.ofSeconds(20));

        administrator.updateQueue(administrator.getQueue("s278"));
        QueueRuntimeProperties after = asynchronous.getQueueRuntimeProperties("s278").block(DEADLINE);
        assertFalse(after.getUpdatedAt().isBefore(fresh.getUpdatedAt()));
        assertEquals(fresh.getCreatedAt(), after.getCreatedAt());
        List<Long> listed = administrator.listQueues().stream().filter(each -> each.getName().equals("s278"))
            .map(each -> new QueueRuntimeProperties(each).getTotalMessageCount()).distinct().toList();
        assertEquals(List.of(8L), listed);
    }

    @Test
    void s279_counts_of_topics_and_subscriptions() {
        administrator.createTopic("s279");
        administrator.createSubscription("s279", "a");
        administrator.createSubscription("s279", "b");
        ServiceBusSenderClient sender = secured.topicSender("s279");
        sender.sendMessages(numbered(3));
        sender.scheduleMessage(message(4), in(Duration.ofHours(1)));
        ServiceBusReceiverClient receiver = secured.receiver("s279/a");
        List<ServiceBusReceivedMessage> messages = receive(receiver, 2);
        receiver.complete(messages.get(0));
        receiver.deadLetter(messages.get(1));

        TopicRuntimeProperties topic = administrator.getTopicRuntimeProperties("s279");
        assertEquals("s279", topic.getName());
        assertEquals(List.of(2, 1), List.of(topic.getSubscriptionCount(), topic.getScheduledMessageCount()));
        assertTrue(topic.getSizeInBytes() > 0);
        assertNear(topic.getCreatedAt(), in(Duration.ZERO), Duration.ofSeconds(20));
        List<String> counts = administrator.listSubscriptions("s279").stream()
            .map(SubscriptionRuntimeProperties::new).map(Administration::counted).toList();
        assertEquals(List.of("a 2 1 1", "b 3 3 0"), counts);
        assertEquals("a 2 1 1", counted(administrator.getSubscriptionRuntimeProperties("s279", "a")));
    }

    private static String counted(SubscriptionRuntimeProperties each) {
        return "%s %d %d %d".formatted(each.getSubscriptionName(), each.getTotalMessageCount(),
            each.getActiveMessageCount(), each.getDeadLetterMessageCount());
    }

    @Test
    void s280_what_is_deleted_is_gone_with_its_messages_and_links() {
        administrator.createQueue("s280");
        ServiceBusSenderClient sender = secured.sender("s280");
        ServiceBusReceiverClient receiver = secured.receiver("s280");
        sender.sendMessages(numbered(3));
        receiveOne(receiver);
        administrator.deleteQueue("s280");
        fails(MESSAGING_ENTITY_NOT_FOUND, () -> sender.sendMessage(message(4)));
        fails(MESSAGING_ENTITY_NOT_FOUND, () -> bodies(receiver.receiveMessages(1, DEADLINE)));
        assertFalse(administrator.getQueueExists("s280"));

        // One of that name that is made again is another.
        administrator.createQueue("s280");
        secured.sender("s280").sendMessage(message("new"));
        ServiceBusReceivedMessage message = receiveOne(secured.receiver("s280"));
        assertEquals("new 1", message.getBody() + " " + message.getSequenceNumber());

        administrator.createTopic("s280t");
        administrator.createSubscription("s280t", "a");
        administrator.createSubscription("s280t", "b");
        administrator.deleteSubscription("s280t", "a");
        receivingFails("s280t/a");
        receiveNothing(secured.receiver("s280t/b"), Duration.ofMillis(100));
        administrator.deleteTopic("s280t");
        receivingFails("s280t/b");
        fails(MESSAGING_ENTITY_NOT_FOUND, () -> secured.topicSender("s280t").sendMessage(message(1)));
        assertFalse(administrator.getTopicExists("s280t"));
    }

    private void receivingFails(String entity) {
        ServiceBusReceiverClient receiver = secured.receiver(entity);
        fails(MESSAGING_ENTITY_NOT_FOUND, () -> bodies(receiver.receiveMessages(1, DEADLINE)));
    }

    @Test
    void s281_what_is_not_there_is_not_found() {
        String none = "s281-no-such";
        administrator.createTopic("s281");
        administrator.createSubscription("s281", "a");
        assertFalse(administrator.getQueueExists(none));
        assertFalse(administrator.getTopicExists(none));
        assertFalse(administrator.getSubscriptionExists("s281", none));
        assertFalse(administrator.getSubscriptionExists(none, "a"));
        denies(404, none, () -> administrator.getQueue(none));
        denies(404, none, () -> administrator.getQueueRuntimeProperties(none));
        denies(404, none, () -> asynchronous.getTopic(none).block(DEADLINE));
        denies(404, none, () -> administrator.getSubscription("s281", none));
        denies(404, none, () -> administrator.getSubscription(none, "a"));
        denies(404, none, () -> administrator.getRule("s281", "a", none));
        denies(404, none, () -> administrator.deleteQueue(none));
        denies(404, none, () -> asynchronous.deleteTopic(none).block(DEADLINE));
        denies(404, none, () -> administrator.deleteSubscription("s281", none));
        denies(404, none, () -> administrator.deleteRule("s281", "a", none));
        denies(404, none, () -> administrator.createSubscription(none, "a"));
        denies(404, none, () -> administrator.createRule("s281", none, "r"));
        denies(404, none, () -> administrator.listSubscriptions(none).stream().count());
        administrator.createQueue("s281q");
        QueueProperties gone = administrator.getQueue("s281q");
        administrator.deleteQueue("s281q");
        denies(404, "s281q", () -> administrator.updateQueue(gone));
    }

    @Test
    void s282_what_is_there_cannot_be_made_again() {
        administrator.createQueue("s282", new CreateQueueOptions().setMaxDeliveryCount(7));
        administrator.createTopic("s282t");
        administrator.createSubscription("s282t", "a");
        administrator.createRule("s282t", "r", "a", new CreateRuleOptions(new FalseRuleFilter()));
        denies(409, "s282", () -> administrator.createQueue("s282"));
        // A queue and a topic share their names, whatever the case.
        denies(409, "", () -> administrator.createQueue("S282T"));
        denies(409, "", () -> administrator.createTopic("s282"));
        denies(409, "", () -> administrator.createSubscription("s282t", "A"));
        denies(409, "", () -> asynchronous.createRule("s282t", "a", "r").block(DEADLINE));
        assertEquals(7, administrator.getQueue("s282").getMaxDeliveryCount());
        assertInstanceOf(FalseRuleFilter.class, administrator.getRule("s282t", "a", "r").getFilter());
    }

    @Test
    void s283_what_cannot_be_is_refused_and_changes_nothing() {
        Map<String, Consumer<CreateQueueOptions>> wrong = Map.of(
            "LockDuration", each -> each.setLockDuration(Duration.ofMinutes(10)),
            "DefaultMessageTimeToLive", each -> each.setDefaultMessageTimeToLive(Duration.ofMillis(-1)),
            "MaxDeliveryCount", each -> each.setMaxDeliveryCount(0),
            "DuplicateDetectionHistoryTimeWindow",
            each -> each.setDuplicateDetectionHistoryTimeWindow(Duration.ofDays(8)),
            "AutoDeleteOnIdle", each -> each.setAutoDeleteOnIdle(Duration.ofMinutes(1)),
            "Status", each -> each.setStatus(EntityStatus.fromString("Asleep")),
            "UserMetadata", each -> each.setUserMetadata("x".repeat(1025)));
        wrong.forEach((element, change) -> {
            CreateQueueOptions options = new CreateQueueOptions();
            change.accept(options);
            denies(400, "SubCode=40000", () -> administrator.createQueue("s283-wrong", options));
            denies(400, element, () -> administrator.createQueue("s283-wrong", options));
        });
        denies(400, "", () ->
            administrator.createQueue("s283-wrong", new CreateQueueOptions().setForwardTo("s283-wrong")));
        denies(400, "", () -> administrator.createQueue("s283" + "x".repeat(260)));
        assertFalse(administrator.getQueueExists("s283-wrong"));

        Map<String, Object> before = Described.of(administrator.createQueue("s283"));
        denies(400, "LockDuration", () -> administrator.updateQueue(
            administrator.getQueue("s283").setMaxDeliveryCount(3).setLockDuration(Duration.ofMillis(500))));
        assertEquals(before, Described.of(administrator.getQueue("s283")));

        Map<String, Object> topic = Described.of(administrator.createTopic("s283t"));
        denies(400, "RequiresDuplicateDetection", () -> administrator.updateTopic(
            administrator.getTopic("s283t").setUserMetadata("x").setDuplicateDetectionRequired(true)));
        assertEquals(topic, Described.of(administrator.getTopic("s283t")));
    }

    @Test
    void s284_the_namespace_tells_of_itself() {
        NamespaceProperties found = administrator.getNamespaceProperties();
        assertEquals("secured", found.getName());
        assertTrue(Set.of(MessagingSku.STANDARD, MessagingSku.PREMIUM).contains(found.getMessagingSku()));
        assertFalse(found.getCreatedTime().isAfter(OffsetDateTime.now()));
        assertFalse(found.getModifiedTime().isBefore(found.getCreatedTime()));
    }

    @Test
    void s285_changes_are_at_work_at_once() {
        QueueProperties properties = administrator.createQueue("s285");
        ServiceBusSenderClient sender = secured.sender("s285");
        ServiceBusReceiverClient receiver = secured.receiver("s285");
        sender.sendMessages(numbered(2));
        receiver.abandon(receiveOne(receiver));
        properties = administrator.updateQueue(properties.setMaxDeliveryCount(2));
        receiver.abandon(receiveOne(receiver));
        assertEquals("MaxDeliveryCountExceeded", receiveOne(secured.deadLetters("s285")).getDeadLetterReason());

        properties = administrator.updateQueue(properties.setLockDuration(Duration.ofSeconds(5)));
        ServiceBusReceivedMessage message = receiveOne(receiver);
        assertNear(message.getLockedUntil(), in(Duration.ofSeconds(5)), Duration.ofSeconds(2));
        receiver.complete(message);

        properties = administrator.updateQueue(properties.setStatus(EntityStatus.DISABLED));
        fails(MESSAGING_ENTITY_DISABLED, () -> sender.sendMessage(message(3)));
        fails(MESSAGING_ENTITY_DISABLED, () -> bodies(receiver.receiveMessages(1, DEADLINE)));
        administrator.updateQueue(properties.setStatus(EntityStatus.ACTIVE));
        secured.sender("s285").sendMessage(message(4));
        assertEquals("4", receiveOne(secured.receiver("s285")).getBody().toString());
    }

    @Test
    void s286_a_queue_is_made_to_forward_and_not_to() {
        denies(400, "", () -> administrator.createQueue("s286", new CreateQueueOptions().setForwardTo("s286-no-such")));
        administrator.createQueue("s286b");
        administrator.createQueue("s286d");
        administrator.createQueue("s286",
            new CreateQueueOptions().setForwardTo("s286b").setForwardDeadLetteredMessagesTo("s286d"));
        administrator.createTopic("s286t");
        administrator.createSubscription("s286t", "a", new CreateSubscriptionOptions()
            .setForwardTo("https://" + Endpoint.NAMESPACE + "/s286b").setForwardDeadLetteredMessagesTo("s286d"));
        QueueProperties queue = administrator.getQueue("s286");
        SubscriptionProperties subscription = administrator.getSubscription("s286t", "a");
        // The address that this SDK makes of a name comes back as it was sent.
        String absolute = "https://" + Endpoint.NAMESPACE + "/";
        assertEquals(List.of(absolute + "s286b", absolute + "s286d", absolute + "s286b", absolute + "s286d"), List.of(
            queue.getForwardTo(), queue.getForwardDeadLetteredMessagesTo(),
            subscription.getForwardTo(), subscription.getForwardDeadLetteredMessagesTo()));
        secured.sender("s286").sendMessage(message("queue"));
        secured.topicSender("s286t").sendMessage(message("topic"));
        assertEquals(Set.of("queue", "topic"), Set.copyOf(bodies(receive(secured.receiver("s286b"), 2))));

        // What was read and is written unchanged leaves it as it was.
        administrator.updateQueue(queue);
        secured.sender("s286").sendMessage(message("again"));
        assertEquals("again", receiveOne(secured.receiver("s286b")).getBody().toString());

        // Without a target it keeps what it gets, and its dead letters.
        administrator.updateQueue(queue.setForwardTo(null).setForwardDeadLetteredMessagesTo(null));
        secured.sender("s286").sendMessage(message("kept"));
        ServiceBusReceiverClient receiver = secured.receiver("s286");
        receiver.deadLetter(receiveOne(receiver));
        assertEquals("kept", receiveOne(secured.deadLetters("s286")).getBody().toString());
    }

    /** The SDK speaks HTTPS to port 443: another way is shown to it where its requests leave. */
    @Test
    void s288_administration_on_every_port_with_tls_and_without() {
        Endpoint endpoint = Endpoint.secured();
        for (String scheme : List.of("https", "http")) {
            for (String address : List.of(
                    endpoint.amqp(), endpoint.http(), Endpoint.NAMESPACE + ":5671", Endpoint.NAMESPACE + ":443")) {
                ServiceBusAdministrationClient each = Endpoint.administrators(Endpoint.keyed(Endpoint.ROOT, endpoint.key()))
                    .addPolicy(Endpoint.goingTo(scheme, address)).buildClient();
                String name = "s288-" + scheme + address.replace(':', '-');
                each.createQueue(name);
                roundTrip(secured, name);
                each.deleteQueue(name);
                assertFalse(administrator.getQueueExists(name));
            }
        }
        // The emulator's way: its connection string, and its port in place of HTTPS.
        ServiceBusAdministrationClient emulators = Endpoint.administrators(System.getenv("JITNEY_CONNECTION_STRING"))
            .addPolicy(Endpoint.goingTo("http", Endpoint.open().http())).buildClient();
        emulators.createQueue("s288");
        roundTrip(client, "s288");
        emulators.deleteQueue("s288");
    }

    @Test
    void s288_administration_by_every_version_that_the_sdk_knows() {
        for (ServiceBusServiceVersion version : ServiceBusServiceVersion.values()) {
            ServiceBusAdministrationClient each = Endpoint.administrators(Endpoint.keyed(Endpoint.ROOT, Endpoint.secured().key()))
                .serviceVersion(version).buildClient();
            String name = "s288-" + version.getVersion();
            each.createTopic(name, new CreateTopicOptions().setUserMetadata(version.getVersion()));
            each.createSubscription(name, "a");
            assertEquals(version.getVersion(), each.getTopic(name).getUserMetadata());
            assertEquals(1, each.getTopicRuntimeProperties(name).getSubscriptionCount());
            assertEquals(Map.of("$Default", "true"), RuleAdministration.told(each, name, "a"));
            each.deleteTopic(name);
        }
    }

    @Test
    void s289_names_may_have_slashes_and_other_signs() {
        for (String name : List.of("s289/orders/new", "s289.a-b_c", "s289~ü")) {
            administrator.createQueue(name);
            QueueProperties found = administrator.getQueue(name);
            assertEquals(name, found.getName());
            Connection connection = connect(Endpoint.keyed(Endpoint.ROOT, Endpoint.secured().key()));
            connection.sender(name).sendMessage(message(name));
            ServiceBusReceiverClient receiver =
                connection.keep(connection.builder().receiver().queueName(name).buildClient());
            assertEquals(name, receiveOne(receiver).getBody().toString());
            administrator.deleteQueue(name);
            assertFalse(administrator.getQueueExists(name));
        }
    }
}

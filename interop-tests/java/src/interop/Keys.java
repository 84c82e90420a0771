package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.UNAUTHORIZED;
import static com.azure.messaging.servicebus.administration.models.AccessRights.LISTEN;
import static com.azure.messaging.servicebus.administration.models.AccessRights.MANAGE;
import static com.azure.messaging.servicebus.administration.models.AccessRights.SEND;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.credential.AccessToken;
import com.azure.core.credential.AzureSasCredential;
import com.azure.core.credential.TokenCredential;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateTopicOptions;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.SharedAccessAuthorizationRule;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** Everything here is at the secured broker. */
@Tag("secured")
class Keys extends Scenarios {
    private final ServiceBusAdministrationClient administrator = Endpoint.administrator();
    private final String rootKey = Endpoint.secured().key();

    /** A connection with a key. */
    private Connection with(String name, String key) {
        return connect(Endpoint.keyed(name, key));
    }

    /** A connection with a signature in place of a key. */
    private Connection bearing(String signature) {
        return connect(Endpoint.bearing(signature));
    }

    /** Neither the queue nor its management node can be used. */
    private static void denies(Connection connection, String queue) {
        deniesSending(connection, queue);
        deniesReceiving(connection, queue);
    }

    private static void deniesSending(Connection connection, String queue) {
        fails(UNAUTHORIZED, () -> connection.sender(queue).sendMessage(message("denied")));
    }

    private static void deniesReceiving(Connection connection, String queue) {
        fails(UNAUTHORIZED, () -> bodies(connection.receiver(queue).receiveMessages(1, DEADLINE)));
        fails(UNAUTHORIZED, () -> connection.receiver(queue).peekMessage());
    }

    @Test
    void s264_a_wrong_key_and_an_unknown_name_are_unauthorized() {
        administrator.createQueue("s264");
        denies(with(Endpoint.ROOT, "wrong"), "s264");
        denies(with("no-such-name", rootKey), "s264");
        denies(with(Endpoint.ROOT, "wrong").overWebSockets(), "s264");
        roundTrip(with(Endpoint.ROOT, rootKey), "s264");
        Connection speaker = with("speaker", Endpoint.SPEAKER_KEY);
        Connection listener = with("listener", Endpoint.LISTENER_KEY);
        speaker.sender("s264").sendMessage(message(1));
        deniesReceiving(speaker, "s264");
        assertEquals(List.of("1"), bodies(receive(listener.receiver("s264"), 1)));
        deniesSending(listener, "s264");
    }

    /** A shared access signature as anybody can make one. */
    private static String signed(String resource, String name, String key, Duration validity) throws Exception {
        String escaped = escaped(resource);
        long end = in(validity).toEpochSecond();
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        byte[] hash = mac.doFinal((escaped + "\n" + end).getBytes(StandardCharsets.UTF_8));
        return "SharedAccessSignature sr=" + escaped + "&sig=" + escaped(Base64.getEncoder().encodeToString(hash))
            + "&se=" + end + "&skn=" + escaped(name);
    }

    private static String escaped(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    @Test
    void s265_a_signature_is_good_for_its_resource_and_its_time() throws Exception {
        administrator.createQueue("s265");
        administrator.createQueue("s265b");
        String whole = "sb://" + Endpoint.NAMESPACE + "/";
        Duration hour = Duration.ofHours(1);
        for (String resource : List.of(
                whole, "amqps://" + Endpoint.NAMESPACE, "https://" + Endpoint.NAMESPACE + "/", Endpoint.NAMESPACE)) {
            roundTrip(bearing(signed(resource, Endpoint.ROOT, rootKey, hour)), "s265");
        }
        Connection own = bearing(signed(whole + "s265", Endpoint.ROOT, rootKey, hour));
        roundTrip(own, "s265");
        denies(own, "s265b");
        for (String signature : List.of(
                signed(whole, Endpoint.ROOT, rootKey, hour.negated()),
                signed(whole, Endpoint.ROOT, "wrong", hour),
                signed(whole, Endpoint.ROOT, rootKey, hour).replace("&se=", "&se=1"),
                "SharedAccessSignature sr=nonsense&sig=nonsense&se=" + in(hour).toEpochSecond() + "&skn=nonsense")) {
            denies(bearing(signature), "s265");
        }
    }

    @Test
    void s265_a_link_ends_with_its_signature() throws Exception {
        administrator.createQueue("s265c");
        Connection connection =
            bearing(signed("sb://" + Endpoint.NAMESPACE + "/s265c", Endpoint.ROOT, rootKey, Duration.ofSeconds(8)));
        ServiceBusSenderClient sender = connection.sender("s265c");
        ServiceBusReceiverClient receiver = connection.receiver("s265c");
        sender.sendMessage(message(1));
        receiver.complete(receiveOne(receiver));
        // In its last second the SDK gives its links up by itself, and pauses before it tries once more in vain.
        fails(UNAUTHORIZED, () -> bodies(receiver.receiveMessages(1, DEADLINE.multipliedBy(2))));
        fails(UNAUTHORIZED, () -> sender.sendMessage(message(2)));
        deniesSending(connection, "s265c");
        assertEquals(List.of(), peekAll(with(Endpoint.ROOT, rootKey).receiver("s265c")));
    }

    @Test
    void s265_a_link_goes_on_with_the_next_signature() {
        administrator.createQueue("s265d");
        AtomicInteger given = new AtomicInteger();
        Duration validity = Duration.ofSeconds(5);
        TokenCredential renewing = request -> Mono.fromCallable(() -> {
            given.incrementAndGet();
            String signature = signed("sb://" + Endpoint.NAMESPACE + "/s265d", Endpoint.ROOT, rootKey, validity);
            return new AccessToken(signature, in(validity));
        });
        Connection connection = connect(renewing);
        ServiceBusSenderClient sender = connection.sender("s265d");
        ServiceBusReceiverClient receiver = connection.receiver("s265d");
        sender.sendMessage(message(1));
        ServiceBusReceivedMessage first = receiveOne(receiver);
        receiveNothing(receiver, Duration.ofSeconds(8));
        // The links are those of before.
        receiver.complete(first);
        sender.sendMessage(message(2));
        assertEquals("2", receiveOne(receiver).getBody().toString());
        assertTrue(given.get() > 3, given::toString);
    }

    @Test
    void s266_a_key_allows_what_its_rule_says_on_its_entity() {
        SharedAccessAuthorizationRule listener = new SharedAccessAuthorizationRule("listener", List.of(LISTEN));
        SharedAccessAuthorizationRule speaker = new SharedAccessAuthorizationRule("speaker", List.of(SEND));
        SharedAccessAuthorizationRule manager =
            new SharedAccessAuthorizationRule("manager", List.of(MANAGE, SEND, LISTEN));
        CreateQueueOptions options = new CreateQueueOptions();
        options.getAuthorizationRules().addAll(List.of(listener, speaker, manager));
        administrator.createQueue("s266", options);
        administrator.createQueue("s266b");

        Connection speaking = with("speaker", speaker.getPrimaryKey());
        ServiceBusSenderClient sender = speaking.sender("s266");
        sender.sendMessages(numbered(3));
        sender.cancelScheduledMessage(sender.scheduleMessage(message(4), in(Duration.ofHours(1))));
        deniesReceiving(speaking, "s266");

        Connection listening = with("listener", listener.getSecondaryKey());
        ServiceBusReceiverClient receiver = listening.receiver("s266");
        assertEquals(texts(1, 3), bodies(peekAll(receiver)));
        List<ServiceBusReceivedMessage> messages = receive(receiver, 3);
        receiver.complete(messages.get(0));
        receiver.defer(messages.get(1));
        receiver.deadLetter(messages.get(2));
        receiver.complete(receiver.receiveDeferredMessage(2));
        assertEquals(List.of("3"), bodies(receive(listening.deadLetters("s266"), 1)));
        deniesSending(listening, "s266");

        roundTrip(with("manager", manager.getPrimaryKey()), "s266");
        denies(with("manager", manager.getPrimaryKey()), "s266b");
        denies(with("speaker", speaker.getPrimaryKey()), "s266b");
        denies(with("speaker", listener.getPrimaryKey()), "s266");
    }

    @Test
    void s267_keys_of_a_topic_are_good_for_its_subscriptions() {
        SharedAccessAuthorizationRule listener = new SharedAccessAuthorizationRule("listener", List.of(LISTEN));
        SharedAccessAuthorizationRule speaker = new SharedAccessAuthorizationRule("speaker", List.of(SEND));
        CreateTopicOptions options = new CreateTopicOptions();
        options.getAuthorizationRules().addAll(List.of(listener, speaker));
        administrator.createTopic("s267", options);
        administrator.createSubscription("s267", "a");
        Connection speaking = with("speaker", speaker.getPrimaryKey());
        speaking.topicSender("s267").sendMessage(message(1));
        deniesReceiving(speaking, "s267/a");
        Connection listening = with("listener", listener.getPrimaryKey());
        assertEquals(List.of("1"), bodies(receive(listening.receiver("s267/a"), 1)));
        deniesSending(listening, "s267");
    }

    @Test
    void s268_a_key_that_was_replaced_opens_nothing_more() {
        SharedAccessAuthorizationRule rule = new SharedAccessAuthorizationRule("speaker", List.of(SEND));
        String first = rule.getPrimaryKey();
        String second = rule.getSecondaryKey();
        CreateQueueOptions options = new CreateQueueOptions();
        options.getAuthorizationRules().add(rule);
        QueueProperties made = administrator.createQueue("s268", options);
        with("speaker", first).sender("s268").sendMessage(message(1));

        rule.setPrimaryKey(second).setSecondaryKey("YW5vdGhlciBrZXkgZm9yIGEgc3BlYWtlciwgYmFzZTY0ISE=");
        made.getAuthorizationRules().set(0, rule);
        administrator.updateQueue(made);
        deniesSending(with("speaker", first), "s268");
        with("speaker", second).sender("s268").sendMessage(message(2));
        with("speaker", rule.getSecondaryKey()).sender("s268").sendMessage(message(3));
        assertEquals(texts(1, 3), bodies(receive(with(Endpoint.ROOT, rootKey).receiver("s268"), 3)));
    }

    @Test
    void s269_the_emulators_connection_string_is_verified_too() {
        administrator.createQueue("s269");
        String emulator = ";UseDevelopmentEmulator=true";
        String address = Endpoint.secured().amqp();
        roundTrip(connect(Endpoint.keyed(address, Endpoint.ROOT, rootKey) + emulator), "s269");
        denies(connect(Endpoint.keyed(address, Endpoint.ROOT, "SAS_KEY_VALUE") + emulator), "s269");
        // Where no key is verified any key is good.
        Connection open = connect(Endpoint.keyed(Endpoint.open().amqp(), "any", "key") + emulator);
        assertDoesNotThrow(() -> open.receiver("s01").peekMessage());
    }

    @Test
    void s287_administration_needs_the_right_to_manage() throws Exception {
        SharedAccessAuthorizationRule speaker = new SharedAccessAuthorizationRule("speaker", List.of(SEND, LISTEN));
        CreateQueueOptions options = new CreateQueueOptions();
        options.getAuthorizationRules().add(speaker);
        administrator.createQueue("s287", options);
        String https = "https://" + Endpoint.NAMESPACE;
        String refused = "SubCode=401";
        // A key that lacks the right is told which claims reading needs, in the service's words. The client signs for the
        // namespace, for which a queue's key is not good.
        String lacks = "Manage,EntityRead claims required";
        record Denied(ServiceBusAdministrationClient who, String reading) {}
        for (Denied each : List.of(
                new Denied(Endpoint.administrators(Endpoint.keyed(Endpoint.ROOT, "wrong")).buildClient(), refused),
                new Denied(Endpoint.administrators(Endpoint.keyed("no-such-name", rootKey)).buildClient(), refused),
                new Denied(Endpoint.administrators(Endpoint.keyed("speaker", speaker.getPrimaryKey())).buildClient(), refused),
                new Denied(Endpoint.administrators(Endpoint.keyed("listener", Endpoint.LISTENER_KEY)).buildClient(), lacks),
                new Denied(signing(signed(https, Endpoint.ROOT, rootKey, Duration.ofHours(-1))), refused))) {
            denies(401, refused, () -> each.who().createQueue("s287b"));
            denies(401, refused, () -> each.who().deleteQueue("s287"));
            denies(401, each.reading(), () -> each.who().getQueue("s287"));
            denies(401, each.reading(), () -> each.who().listQueues().stream().count());
        }
        assertEquals("s287", administrator.getQueue("s287").getName());
        assertEquals(false, administrator.getQueueExists("s287b"));
        ServiceBusAdministrationClient signing = signing(signed(https, Endpoint.ROOT, rootKey, Duration.ofHours(1)));
        assertEquals("s287", signing.getQueue("s287").getName());
    }

    private static ServiceBusAdministrationClient signing(String signature) {
        return new ServiceBusAdministrationClientBuilder().endpoint("https://" + Endpoint.NAMESPACE)
            .credential(new AzureSasCredential(signature)).buildClient();
    }
}

import com.microsoft.azure.servicebus.ClientFactory;
import com.microsoft.azure.servicebus.IMessage;
import com.microsoft.azure.servicebus.IMessageReceiver;
import com.microsoft.azure.servicebus.IMessageSender;
import com.microsoft.azure.servicebus.IMessageSession;
import com.microsoft.azure.servicebus.Message;
import com.microsoft.azure.servicebus.ReceiveMode;
import com.microsoft.azure.servicebus.SubscriptionClient;
import com.microsoft.azure.servicebus.primitives.ConnectionStringBuilder;
import com.microsoft.azure.servicebus.primitives.MessagingEntityNotFoundException;
import com.microsoft.azure.servicebus.rules.RuleDescription;
import com.microsoft.azure.servicebus.rules.SqlFilter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The steps (../../../README.md) with one version of com.microsoft.azure's azure-servicebus: `Main amqp|websockets PREFIX`. */
final class Main {
    private static final String DEAD_LETTERS = "/$DeadLetterQueue";

    private final String connectionString;
    private final String prefix;

    private Main(String transport, String prefix) {
        // The oldest version has no class for it.
        connectionString = System.getenv("CONNECTION_STRING") + (transport.equals("websockets") ? ";TransportType=AmqpWebSockets" : "");
        this.prefix = prefix;
    }

    private ConnectionStringBuilder to(String entity) {
        ConnectionStringBuilder address = new ConnectionStringBuilder(connectionString, entity);
        address.setOperationTimeout(Duration.ofSeconds(20));
        return address;
    }

    private IMessageSender sender(String queue) throws Exception {
        return ClientFactory.createMessageSenderFromConnectionStringBuilder(to(prefix + "-" + queue));
    }

    private IMessageReceiver receiver(String queue, ReceiveMode mode) throws Exception {
        return ClientFactory.createMessageReceiverFromConnectionStringBuilder(to(prefix + "-" + queue), mode);
    }

    private static Message message(String body) {
        return new Message(body);
    }

    private static String body(IMessage message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    private void send(String queue, Message... messages) throws Exception {
        IMessageSender sender = sender(queue);
        for (Message message : messages) {
            sender.send(message);
        }
        sender.close();
    }

    private static List<IMessage> next(IMessageReceiver receiver, int count) throws Exception {
        return Steps.collect(left -> receiver.receiveBatch(left, Duration.ofSeconds(5)), count);
    }

    private static IMessage next(IMessageReceiver receiver) throws Exception {
        return next(receiver, 1).get(0);
    }

    private void empty(String queue) throws Exception {
        IMessageReceiver receiver = receiver(queue, ReceiveMode.PEEKLOCK);
        Steps.check(receiver.peek() == null, "there is a message");
        receiver.close();
    }

    private interface Use {
        void of(IMessageReceiver receiver, IMessage message) throws Exception;
    }

    /** Sends a message to a queue, receives it, and calls `use` with it. */
    private void one(String queue, Use use) throws Exception {
        send(queue, message("one"));
        IMessageReceiver receiver = receiver(queue, ReceiveMode.PEEKLOCK);
        use.of(receiver, next(receiver));
        receiver.close();
    }

    private static void complete(IMessageReceiver receiver, IMessage message) throws Exception {
        receiver.complete(message.getLockToken());
    }

    private IMessageSession session(String queue, String id, boolean isNamed) throws Exception {
        Message message = message("one");
        message.setSessionId(id);
        send(queue, message);
        IMessageSession session = ClientFactory.acceptSessionFromConnectionStringBuilder(
            to(prefix + "-" + queue), isNamed ? id : null, ReceiveMode.PEEKLOCK);
        Steps.check(session.getSessionId().equals(id), "the session is " + session.getSessionId());
        return session;
    }

    private Map<String, Steps.Step> steps() {
        Map<String, Steps.Step> steps = new LinkedHashMap<>();
        steps.put("send", () -> {
            Message sent = message("one");
            sent.setProperties(Map.of("number", "7"));
            send("send", sent);
            IMessageReceiver receiver = receiver("send", ReceiveMode.PEEKLOCK);
            IMessage message = next(receiver);
            Steps.check(body(message).equals("one"), "the body is " + body(message));
            Steps.check("7".equals(message.getProperties().get("number")), "the properties are " + message.getProperties());
            complete(receiver, message);
            receiver.close();
        });
        steps.put("batch", () -> {
            List<Message> messages = new ArrayList<>();
            for (int number = 0; number < 20; number++) {
                messages.add(message("" + number));
            }
            IMessageSender sender = sender("batch");
            sender.sendBatch(messages);
            sender.close();
            IMessageReceiver receiver = receiver("batch", ReceiveMode.PEEKLOCK);
            int number = 0;
            for (IMessage message : next(receiver, 20)) {
                Steps.check(body(message).equals("" + number), "message " + number + " is " + body(message));
                complete(receiver, message);
                number++;
            }
            receiver.close();
            empty("batch");
        });
        steps.put("receive-and-delete", () -> {
            send("receive-and-delete", message("one"), message("two"));
            IMessageReceiver receiver = receiver("receive-and-delete", ReceiveMode.RECEIVEANDDELETE);
            next(receiver, 2);
            receiver.close();
            empty("receive-and-delete");
        });
        steps.put("complete", () -> {
            one("complete", Main::complete);
            empty("complete");
        });
        // Versions count from zero, or from one.
        steps.put("abandon", () -> one("abandon", (receiver, message) -> {
            receiver.abandon(message.getLockToken());
            IMessage again = next(receiver);
            Steps.check(again.getDeliveryCount() == message.getDeliveryCount() + 1, "the delivery count is " + again.getDeliveryCount());
            complete(receiver, again);
        }));
        steps.put("defer", () -> {
            one("defer", (receiver, message) -> {
                receiver.defer(message.getLockToken());
                IMessage deferred = receiver.receiveDeferredMessage(message.getSequenceNumber());
                Steps.check(body(deferred).equals("one"), "the body is " + body(deferred));
                complete(receiver, deferred);
            });
            empty("defer");
        });
        steps.put("dead-letter", () -> {
            one("dead-letter", (receiver, message) -> receiver.deadLetter(message.getLockToken(), "a reason", "a description"));
            IMessageReceiver receiver = receiver("dead-letter" + DEAD_LETTERS, ReceiveMode.PEEKLOCK);
            IMessage letter = next(receiver);
            Object reason = letter.getProperties().get("DeadLetterReason");
            Steps.check("a reason".equals(reason), "the reason is " + reason);
            complete(receiver, letter);
            receiver.close();
        });
        steps.put("schedule", () -> {
            IMessageSender sender = sender("schedule");
            sender.scheduleMessage(message("one"), Instant.now().plusSeconds(1));
            sender.close();
            IMessageReceiver receiver = receiver("schedule", ReceiveMode.PEEKLOCK);
            complete(receiver, next(receiver));
            receiver.close();
        });
        steps.put("cancel", () -> {
            IMessageSender sender = sender("cancel");
            sender.cancelScheduledMessage(sender.scheduleMessage(message("one"), Instant.now().plusSeconds(3600)));
            sender.close();
            empty("cancel");
        });
        steps.put("peek", () -> {
            send("peek", message("one"), message("two"));
            IMessageReceiver receiver = receiver("peek", ReceiveMode.PEEKLOCK);
            List<String> bodies = new ArrayList<>();
            receiver.peekBatch(2).forEach(message -> bodies.add(body(message)));
            Steps.check(bodies.equals(List.of("one", "two")), "the messages are " + bodies);
            receiver.close();
        });
        steps.put("renew", () -> one("renew", (receiver, message) -> {
            Instant before = message.getLockedUntilUtc();
            Thread.sleep(100);
            Steps.check(receiver.renewMessageLock(message).isAfter(before), "the lock ends no later");
            complete(receiver, message);
        }));
        steps.put("session", () -> {
            IMessageSession session = session("session", "a", true);
            IMessage message = next(session);
            session.setState("a state".getBytes(StandardCharsets.UTF_8));
            String state = new String(session.getState(), StandardCharsets.UTF_8);
            Steps.check(state.equals("a state"), "the state is " + state);
            session.renewSessionLock();
            complete(session, message);
            session.close();
        });
        steps.put("next-session", () -> {
            IMessageSession session = session("next-session", "b", false);
            complete(session, next(session));
            session.close();
        });
        steps.put("rules", () -> {
            SubscriptionClient subscription = new SubscriptionClient(to(prefix + "-topic/subscriptions/subscription"), ReceiveMode.PEEKLOCK);
            subscription.addRule(new RuleDescription("red", new SqlFilter("color = 'red'")));
            List<String> names = new ArrayList<>();
            subscription.getRules().forEach(rule -> names.add(rule.getName()));
            Steps.check(names.contains("red"), "the rules are " + names);
            subscription.removeRule("$Default");
            subscription.close();
            for (String color : List.of("blue", "red")) {
                Message message = message(color);
                message.setProperties(Map.of("color", color));
                send("topic", message);
            }
            IMessageReceiver receiver = receiver("topic/subscriptions/subscription", ReceiveMode.PEEKLOCK);
            IMessage message = next(receiver);
            Steps.check(body(message).equals("red"), "the message is " + body(message));
            complete(receiver, message);
            receiver.close();
        });
        steps.put("unknown", () -> {
            try {
                send("unknown", message("one"));
            } catch (MessagingEntityNotFoundException error) {
                return;
            }
            throw new AssertionError("no error");
        });
        return steps;
    }

    public static void main(String[] arguments) {
        Steps.run(new Main(arguments[0], arguments[1]).steps());
    }
}

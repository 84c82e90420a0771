import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.AmqpTransportType;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** The steps (../../../README.md) with one version of azure-messaging-servicebus: `Main amqp|websockets PREFIX`. */
final class Main {
    private final ServiceBusClientBuilder builder;
    private final String prefix;

    private Main(String transport, String prefix) {
        // No retries: what fails first must be seen.
        builder = new ServiceBusClientBuilder().connectionString(System.getenv("CONNECTION_STRING"))
            .transportType(transport.equals("websockets") ? AmqpTransportType.AMQP_WEB_SOCKETS : AmqpTransportType.AMQP)
            .retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(Duration.ofSeconds(30)));
        this.prefix = prefix;
    }

    private ServiceBusSenderClient sender(String queue) {
        return builder.sender().queueName(prefix + "-" + queue).buildClient();
    }

    private ServiceBusClientBuilder.ServiceBusReceiverClientBuilder receiver(String queue) {
        return builder.receiver().queueName(prefix + "-" + queue).disableAutoComplete();
    }

    private static ServiceBusMessage message(String body) {
        return new ServiceBusMessage(body);
    }

    private void send(String queue, ServiceBusMessage... messages) {
        try (ServiceBusSenderClient sender = sender(queue)) {
            sender.sendMessages(List.of(messages));
        }
    }

    private static List<ServiceBusReceivedMessage> next(ServiceBusReceiverClient receiver, int count) throws Exception {
        return Steps.collect(left -> receiver.receiveMessages(left, Duration.ofSeconds(5)), count);
    }

    private static ServiceBusReceivedMessage next(ServiceBusReceiverClient receiver) throws Exception {
        return next(receiver, 1).get(0);
    }

    /** Receives, and does not peek: a peek as the first call is a step of its own. */
    private void empty(String queue) {
        try (ServiceBusReceiverClient receiver = receiver(queue).buildClient()) {
            long left = receiver.receiveMessages(1, Duration.ofSeconds(1)).stream().count();
            Steps.check(left == 0, "there is a message");
        }
    }

    private interface Use {
        void of(ServiceBusReceiverClient receiver, ServiceBusReceivedMessage message) throws Exception;
    }

    /** Sends a message to a queue, receives it, and calls `use` with it. */
    private void one(String queue, Use use) throws Exception {
        send(queue, message("one"));
        try (ServiceBusReceiverClient receiver = receiver(queue).buildClient()) {
            use.of(receiver, next(receiver));
        }
    }

    private void session(String queue, String id, boolean isNamed, Use use) throws Exception {
        send(queue, message("one").setSessionId(id));
        try (ServiceBusSessionReceiverClient sessions = builder.sessionReceiver().queueName(prefix + "-" + queue).disableAutoComplete()
                .buildClient();
             ServiceBusReceiverClient receiver = isNamed ? sessions.acceptSession(id) : sessions.acceptNextSession()) {
            ServiceBusReceivedMessage message = next(receiver);
            Steps.check(id.equals(message.getSessionId()), "the session is " + message.getSessionId());
            use.of(receiver, message);
        }
    }

    private Map<String, Steps.Step> steps() {
        Map<String, Steps.Step> steps = new LinkedHashMap<>();
        steps.put("send", () -> {
            ServiceBusMessage sent = message("one");
            sent.getApplicationProperties().put("number", 7);
            try (ServiceBusSenderClient sender = sender("send")) {
                sender.sendMessage(sent);
            }
            try (ServiceBusReceiverClient receiver = receiver("send").buildClient()) {
                ServiceBusReceivedMessage message = next(receiver);
                Steps.check(message.getBody().toString().equals("one"), "the body is " + message.getBody());
                Object number = message.getApplicationProperties().get("number");
                Steps.check(Integer.valueOf(7).equals(number), "the property is " + number);
                receiver.complete(message);
            }
        });
        steps.put("batch", () -> {
            try (ServiceBusSenderClient sender = sender("batch")) {
                ServiceBusMessageBatch batch = sender.createMessageBatch();
                for (int number = 0; number < 20; number++) {
                    Steps.check(batch.tryAddMessage(message("" + number)), "no room in the batch");
                }
                sender.sendMessages(batch);
            }
            try (ServiceBusReceiverClient receiver = receiver("batch").buildClient()) {
                List<String> bodies = new ArrayList<>();
                for (ServiceBusReceivedMessage message : next(receiver, 20)) {
                    bodies.add(message.getBody().toString());
                    receiver.complete(message);
                }
                Steps.check(bodies.equals(IntStream.range(0, 20).mapToObj(Integer::toString).toList()), "the messages are " + bodies);
            }
            empty("batch");
        });
        steps.put("receive-and-delete", () -> {
            send("receive-and-delete", message("one"), message("two"));
            try (ServiceBusReceiverClient receiver = receiver("receive-and-delete").receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE)
                    .buildClient()) {
                next(receiver, 2);
            }
            empty("receive-and-delete");
        });
        steps.put("complete", () -> {
            one("complete", ServiceBusReceiverClient::complete);
            empty("complete");
        });
        steps.put("abandon", () -> one("abandon", (receiver, message) -> {
            receiver.abandon(message);
            ServiceBusReceivedMessage again = next(receiver);
            Steps.check(again.getDeliveryCount() == 1, "the delivery count is " + again.getDeliveryCount());
            receiver.complete(again);
        }));
        steps.put("defer", () -> {
            one("defer", (receiver, message) -> {
                receiver.defer(message);
                ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(message.getSequenceNumber());
                Steps.check(deferred.getBody().toString().equals("one"), "the body is " + deferred.getBody());
                receiver.complete(deferred);
            });
            empty("defer");
        });
        steps.put("dead-letter", () -> {
            one("dead-letter", (receiver, message) -> receiver.deadLetter(message,
                new DeadLetterOptions().setDeadLetterReason("a reason").setDeadLetterErrorDescription("a description")));
            try (ServiceBusReceiverClient receiver = receiver("dead-letter").subQueue(SubQueue.DEAD_LETTER_QUEUE).buildClient()) {
                ServiceBusReceivedMessage letter = next(receiver);
                Steps.check("a reason".equals(letter.getDeadLetterReason()), "the reason is " + letter.getDeadLetterReason());
                String description = letter.getDeadLetterErrorDescription();
                Steps.check("a description".equals(description), "the text is " + description);
                receiver.complete(letter);
            }
        });
        steps.put("schedule", () -> {
            try (ServiceBusSenderClient sender = sender("schedule")) {
                sender.scheduleMessage(message("one"), OffsetDateTime.now().plusSeconds(1));
            }
            try (ServiceBusReceiverClient receiver = receiver("schedule").buildClient()) {
                receiver.complete(next(receiver));
            }
        });
        steps.put("cancel", () -> {
            try (ServiceBusSenderClient sender = sender("cancel")) {
                List<Long> numbers = new ArrayList<>();
                sender.scheduleMessages(List.of(message("one"), message("two")), OffsetDateTime.now().plusHours(1)).forEach(numbers::add);
                Steps.check(numbers.size() == 2, "the numbers are " + numbers);
                sender.cancelScheduledMessages(numbers);
            }
            try (ServiceBusReceiverClient receiver = receiver("cancel").buildClient()) {
                Steps.check(receiver.peekMessage() == null, "there is a message");
            }
        });
        steps.put("peek", () -> {
            // One by one: 7.2.3 loses the order of a batch.
            send("peek", message("one"));
            send("peek", message("two"));
            try (ServiceBusReceiverClient receiver = receiver("peek").buildClient()) {
                List<String> bodies = new ArrayList<>();
                receiver.peekMessages(2).forEach(message -> bodies.add(message.getBody().toString()));
                Steps.check(bodies.equals(List.of("one", "two")), "the messages are " + bodies);
            }
        });
        steps.put("renew", () -> one("renew", (receiver, message) -> {
            OffsetDateTime before = message.getLockedUntil();
            Thread.sleep(100);
            OffsetDateTime until = receiver.renewMessageLock(message);
            Steps.check(until.isAfter(before), "the lock ends no later");
            receiver.complete(message);
        }));
        steps.put("session", () -> session("session", "a", true, (receiver, message) -> {
            receiver.setSessionState("a state".getBytes(StandardCharsets.UTF_8));
            String state = new String(receiver.getSessionState(), StandardCharsets.UTF_8);
            Steps.check(state.equals("a state"), "the state is " + state);
            receiver.renewSessionLock();
            receiver.complete(message);
        }));
        steps.put("next-session", () -> session("next-session", "b", false, ServiceBusReceiverClient::complete));
        steps.put("rules", () -> {
            String topic = prefix + "-topic";
            Rules.replace(builder, topic);
            try (ServiceBusSenderClient sender = builder.sender().topicName(topic).buildClient()) {
                for (String color : List.of("blue", "red")) {
                    ServiceBusMessage message = message(color);
                    message.getApplicationProperties().put("color", color);
                    sender.sendMessage(message);
                }
            }
            try (ServiceBusReceiverClient receiver = builder.receiver().topicName(topic).subscriptionName("subscription")
                    .disableAutoComplete().buildClient()) {
                ServiceBusReceivedMessage message = next(receiver);
                Steps.check(message.getBody().toString().equals("red"), "the message is " + message.getBody());
                receiver.complete(message);
            }
        });
        steps.put("unknown", () -> {
            try (ServiceBusSenderClient sender = sender("unknown")) {
                sender.sendMessage(message("one"));
            } catch (ServiceBusException error) {
                Steps.check(error.getReason() == ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, "the error is " + error);
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

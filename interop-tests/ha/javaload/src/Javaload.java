import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.models.CompleteOptions;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;

/**
 * The load of load.py in small, with the Java SDK, and with transactions: for the queue {@code java} of each namespace a sender and a receiver,
 * which write the same journal.
 *
 * <p>{@code Javaload JOURNAL ADDRESS NAMESPACE...} works until the input ends; then the senders stop, and the receivers complete what is there until
 * nothing comes any more. A message is completed in a transaction that sends two others, its results; results are completed by themselves. Some
 * transactions are rolled back.
 */
public final class Javaload {
    private static final String QUEUE = "java";
    private static final String RESULT = "result";
    /** Longer on a machine with other work, as load.py has it. */
    private static final Duration ANSWER =
        Duration.ofMillis((long) (5_000 * Math.min(Double.parseDouble(System.getenv().getOrDefault("JITNEY_PATIENCE", "1")), 3)));
    private static final long PAUSE_MILLIS = 80;
    private static final long RETRY_MILLIS = 50;
    private static final long QUIET_MILLIS = 3_000;
    private static final long DRAIN_MILLIS = 60_000;

    private static final String LIFE = "java%x%x".formatted(ProcessHandle.current().pid(), System.currentTimeMillis() / 1000 & 0xfffff);
    private static final AtomicLong MADE = new AtomicLong();
    private static final AtomicLong LAST_GOT = new AtomicLong(System.currentTimeMillis());
    private static volatile boolean isStopping;
    private static volatile boolean isDone;
    private static FileOutputStream journal;
    private static String address;

    private Javaload() {}

    /** What is done over a connection until it has a fault, or nothing is left to do. */
    private interface Work {
        void run(Connection connection, String entity) throws Exception;
    }

    /** A sender and a receiver over one connection: a transaction is a connection's. */
    private static final class Connection implements AutoCloseable {
        private final ServiceBusClientBuilder builder;
        private ServiceBusSenderClient sender;
        private ServiceBusReceiverClient receiver;

        Connection(String namespace) {
            String port = address.substring(address.lastIndexOf(':') + 1);
            // Without the SDK's tries: a request whose answer is lost must stay one.
            builder = new ServiceBusClientBuilder()
                .connectionString("Endpoint=sb://%s.localhost:%s;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
                    .formatted(namespace, port))
                .retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(ANSWER));
        }

        ServiceBusSenderClient sender() {
            if (sender == null) {
                sender = builder.sender().queueName(QUEUE).buildClient();
            }
            return sender;
        }

        ServiceBusReceiverClient receiver() {
            if (receiver == null) {
                receiver = builder.receiver().queueName(QUEUE).disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO).buildClient();
            }
            return receiver;
        }

        @Override
        public void close() {
            if (sender != null) {
                sender.close();
            }
            if (receiver != null) {
                receiver.close();
            }
        }
    }

    /** Seconds of the monotonic clock that Python's {@code time.monotonic()} reads, too. */
    private static double now() {
        return System.nanoTime() / 1e9;
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        text.chars().forEach(each -> out.append(each < ' ' || each == '"' || each == '\\' || each > '~' ? "\\u%04x".formatted(each) : (char) each));
        return out.append('"').toString();
    }

    private static String list(List<String> words) {
        return words.stream().map(Javaload::quoted).collect(Collectors.joining(",", "[", "]"));
    }

    /** Writes a line of the journal, with one system call; {@code more} is JSON. */
    private static void note(String event, String entity, List<String> ids, String more) {
        String line = String.format(Locale.ROOT, "[%.6f,%s,%s,%s,%s]%n", now(), quoted(event), quoted(entity), list(ids), more);
        try {
            journal.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static String fresh() {
        return LIFE + "-" + MADE.incrementAndGet();
    }

    private static String body(String id) {
        return id + " " + "java".repeat(id.length());
    }

    private static ServiceBusMessage message(String id) {
        return new ServiceBusMessage(body(id)).setMessageId(id);
    }

    private static void send(Connection connection, String entity) throws InterruptedException {
        while (!isStopping) {
            List<String> ids = List.of(fresh());
            note("send?", entity, ids, "null");
            connection.sender().sendMessage(message(ids.get(0)));
            note("send!", entity, ids, "null");
            Thread.sleep(PAUSE_MILLIS);
        }
    }

    private static void receive(Connection connection, String entity) {
        Random random = new Random();
        // A receiver that gets nothing from a fault on would get nothing for ever: the SDK ends the iteration without an error. So each ends soon.
        for (int round = 0; !isDone && round < 20; round++) {
            double asked = now();
            for (ServiceBusReceivedMessage each : connection.receiver().receiveMessages(10, Duration.ofSeconds(1))) {
                LAST_GOT.set(System.currentTimeMillis());
                String id = each.getMessageId();
                boolean isWhole = each.getBody().toString().equals(body(id));
                note("got", entity, List.of(id), String.format(Locale.ROOT, "[%d,\"queue\",%.6f,%.6f,%b]", each.getSequenceNumber(), asked,
                    System.currentTimeMillis() / 1e3, isWhole));
                boolean isPlain = RESULT.equals(each.getSubject());
                if (!isPlain && random.nextInt(4) == 0) {
                    transact(connection, entity, null);
                    isPlain = true;
                }
                if (isPlain) {
                    note("complete?", entity, List.of(id), "null");
                    connection.receiver().complete(each);
                    note("complete!", entity, List.of(id), "null");
                } else {
                    transact(connection, entity, each);
                }
            }
        }
    }

    /** Sends two results in a transaction that completes a message; without one, it is rolled back. */
    private static void transact(Connection connection, String entity, ServiceBusReceivedMessage message) {
        List<String> results = List.of(fresh(), fresh());
        List<String> completed = message == null ? List.of() : List.of(message.getMessageId());
        ServiceBusTransactionContext transaction = connection.receiver().createTransaction();
        String verb = message == null ? "rollback" : "commit";
        // Before anything is sent: what a transaction without an end has sent must not be seen either.
        note(verb + "?", entity, results, list(completed));
        for (String id : results) {
            connection.sender().sendMessage(message(id).setSubject(RESULT), transaction);
        }
        if (message == null) {
            connection.receiver().rollbackTransaction(transaction);
        } else {
            connection.receiver().complete(message, new CompleteOptions().setTransactionContext(transaction));
            connection.receiver().commitTransaction(transaction);
        }
        note(verb + "!", entity, results, list(completed));
    }

    /** Writes down what is left. */
    private static void peek(Connection connection, String entity) {
        List<ServiceBusReceivedMessage> found = new ArrayList<>();
        long next = 1;
        while (true) {
            List<ServiceBusReceivedMessage> page = connection.receiver().peekMessages(200, next).stream().toList();
            if (page.isEmpty()) {
                break;
            }
            found.addAll(page);
            next = page.get(page.size() - 1).getSequenceNumber() + 1;
        }
        for (ServiceBusReceivedMessage each : found) {
            note("left", entity, List.of(each.getMessageId()), "[%d,\"active\"]".formatted(each.getSequenceNumber()));
        }
    }

    /** Does the work again and again, with a new connection after each fault, until it ends without one or the time is over. */
    private static void forever(String namespace, Work work, boolean isRepeated, long until) throws InterruptedException {
        String entity = namespace + "/" + QUEUE;
        while (System.currentTimeMillis() < until) {
            try (Connection connection = new Connection(namespace)) {
                work.run(connection, entity);
                if (!isRepeated || isDone) {
                    return;
                }
            } catch (InterruptedException error) {
                throw error;
            } catch (Exception error) {
                note("fault", entity, List.of(), quoted("%.200s".formatted(error)));
                Thread.sleep(RETRY_MILLIS);
            }
        }
        throw new IllegalStateException("not done in time: " + entity);
    }

    private static Thread start(String namespace, Work work, boolean isRepeated) {
        Thread thread = new Thread(() -> {
            try {
                forever(namespace, work, isRepeated, Long.MAX_VALUE);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 3) {
            System.err.println("Javaload JOURNAL ADDRESS NAMESPACE...");
            System.exit(2);
        }
        journal = new FileOutputStream(arguments[0], true);
        address = arguments[1];
        List<String> namespaces = List.of(arguments).subList(2, arguments.length);
        List<Thread> senders = namespaces.stream().map(each -> start(each, Javaload::send, false)).toList();
        List<Thread> receivers = namespaces.stream().map(each -> start(each, Javaload::receive, true)).toList();
        System.in.transferTo(java.io.OutputStream.nullOutputStream());
        isStopping = true;
        for (Thread sender : senders) {
            sender.join(DRAIN_MILLIS);
        }
        long began = System.currentTimeMillis();
        LAST_GOT.set(began);
        while (System.currentTimeMillis() < began + DRAIN_MILLIS && System.currentTimeMillis() < LAST_GOT.get() + QUIET_MILLIS) {
            Thread.sleep(100);
        }
        isDone = true;
        for (Thread receiver : receivers) {
            receiver.join(DRAIN_MILLIS);
        }
        for (String namespace : namespaces) {
            forever(namespace, Javaload::peek, false, System.currentTimeMillis() + DRAIN_MILLIS);
        }
        note("end", "", List.of(), "null");
        System.exit(0);
    }
}

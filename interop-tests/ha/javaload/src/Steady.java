import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusSenderClient;

/** A client of the Java SDK that has nothing but its defaults: steady.py says what it does. */
public final class Steady {
    private static final long PAUSE_MILLIS = 100;
    /** After an error, an application tries again with the same sender. */
    private static final long RETRY_MILLIS = 500;

    private Steady() {}

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void send(ServiceBusSenderClient sender) {
        for (int number = 1;;) {
            try {
                sender.sendMessage(new ServiceBusMessage(Integer.toString(number)));
                say("sent " + number);
                number++;
                sleep(PAUSE_MILLIS);
            } catch (RuntimeException error) {
                say("failed sending %d: %s".formatted(number, error.toString().replace('\n', ' ')));
                sleep(RETRY_MILLIS);
            }
        }
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** Works until the input ends. */
    public static void main(String[] arguments) throws Exception {
        ServiceBusClientBuilder builder = new ServiceBusClientBuilder().connectionString(arguments[0]);
        ServiceBusSenderClient sender = builder.sender().queueName(arguments[1]).buildClient();
        // The processor continues after an error: those of connections and of locks are for the application's log.
        builder.processor().queueName(arguments[1])
            .processMessage(context -> say("received " + context.getMessage().getBody()))
            .processError(context -> {})
            .buildProcessorClient().start();
        Thread work = new Thread(() -> send(sender));
        work.setDaemon(true);
        work.start();
        while (System.in.read() != -1) {
            // The test writes nothing.
        }
        System.exit(0);
    }
}

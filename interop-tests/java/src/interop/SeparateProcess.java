package interop;

import static interop.Scenarios.roundTrip;

import java.util.List;

/**
 * A client in a JVM of its own: sends and receives at a queue, and leaves nothing running.
 *
 * <p>Its words are a connection string, the queue, and {@code amqps} or {@code wss}.
 */
final class SeparateProcess {
    public static void main(String[] words) throws Exception {
        try (Connection connection = new Connection(words[0], Connection.DEADLINE)) {
            roundTrip(words[2].equals("wss") ? connection.overWebSockets() : connection, words[1]);
        }
        List<Thread> threads = Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> thread.getName().startsWith("reactor-executor")).toList();
        for (Thread thread : threads) {
            thread.join(Connection.DEADLINE.toMillis());
            if (thread.isAlive()) {
                System.err.println(thread + " goes on: " + List.of(thread.getStackTrace()));
                System.exit(1);
            }
        }
        System.exit(threads.isEmpty() ? 2 : 0);
    }
}

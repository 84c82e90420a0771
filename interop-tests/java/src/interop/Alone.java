package interop;

import static interop.Scenarios.roundTrip;

/** A client in a JVM of its own: sends and receives at the queue that is named. */
final class Alone {
    public static void main(String[] words) throws Exception {
        try (Connection connection = new Connection(words[0], Connection.DEADLINE)) {
            roundTrip(connection, words[1]);
        }
        System.exit(0);
    }
}

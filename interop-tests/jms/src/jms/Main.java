package jms;

import harness.Suite;
import java.util.Map;

/** Runs the topics and scenarios named, or all. */
public final class Main {
    public static void main(String[] words) {
        Suite.run(words, "jms", Map.of(), test -> true, () -> "");
    }
}

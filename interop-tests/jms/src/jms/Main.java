package jms;

import harness.Suite;

/** Runs the topics and scenarios named, or all. */
public final class Main {
    public static void main(String[] words) {
        Suite.run(words, "jms", test -> true, () -> { });
    }
}

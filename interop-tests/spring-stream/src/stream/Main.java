package stream;

import harness.Suite;

/** Runs the tests named, or all. */
public final class Main {
    public static void main(String[] words) {
        Suite.run(words, "stream", test -> true, Programs::end);
    }
}

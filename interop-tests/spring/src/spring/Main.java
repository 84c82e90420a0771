package spring;

import harness.Suite;
import java.util.Map;

/** Runs the scenarios named, or all. */
public final class Main {
    public static void main(String[] words) {
        Suite.run(words, "spring", Map.of(), test -> true, Programs::end);
    }
}

package spring;

import harness.Suite;

/** Runs the scenarios named, or all. */
public final class Main {
    public static void main(String[] words) {
        Suite.run(words, "spring", test -> true, Programs::end);
    }
}

package protonj2;

import harness.Suite;

/** Runs the topics named, or all. */
public final class Main {
    public static void main(String[] words) {
        Suite.run(words, "protonj2", test -> true, () -> { });
    }
}

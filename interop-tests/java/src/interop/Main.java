package interop;

import harness.Suite;
import org.junit.platform.engine.TestTag;

/** Runs the topics and scenarios named, or all. */
public final class Main {
    public static void main(String[] words) {
        // Scenarios at the secured broker choose their transport themselves.
        TestTag secured = TestTag.create("secured");
        Suite.run(words, "interop", test -> Connection.TRANSPORT.isEmpty() || !test.getTags().contains(secured), () -> { });
    }
}

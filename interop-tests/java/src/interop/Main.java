package interop;

import harness.Suite;
import org.junit.platform.engine.TestTag;

/** Runs the topics and scenarios named, or all. */
public final class Main {
    public static void main(String[] words) {
        // Scenarios at the guarded broker choose their transport themselves.
        TestTag guarded = TestTag.create("guarded");
        Suite.run(words, "interop", test -> Connection.DOOR.isEmpty() || !test.getTags().contains(guarded), () -> { });
    }
}

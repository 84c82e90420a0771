package interop;

import harness.Suite;
import java.util.Map;
import org.junit.platform.engine.TestTag;

/** Runs the topics and scenarios named, or all. */
public final class Main {
    private static final String NO_LIST = "no call for a list of sessions";

    /** What this SDK has no call for, and what takes something else than an SDK. */
    private static final Map<String, String> NOT_OFFERED = Map.of(
        "S32", "a closed receiver keeps what it has prefetched until the locks end",
        "S70", "no call for batch deletion",
        "S313", "a closed receiver keeps what it has prefetched until the locks end",
        "S323", "makes bodies of one data section or one sequence: S07",
        "S120", NO_LIST,
        "S121", NO_LIST,
        "S122", NO_LIST,
        "S123", NO_LIST);

    public static void main(String[] words) {
        // What is at the guarded broker takes every door anyhow, and that broker is but one.
        TestTag guarded = TestTag.create("guarded");
        Suite.run(words, "interop", NOT_OFFERED,
            test -> Connection.DOOR.isEmpty() || !test.getTags().contains(guarded), Place::end);
    }
}

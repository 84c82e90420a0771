package interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/** The fault proxy between a client and the open broker ({@code fault_proxy.py}). */
final class FaultProxy implements AutoCloseable {
    private final Process process;
    private final BufferedReader answers;
    private final Writer orders;
    private final String port;

    FaultProxy() {
        // The runner's command begins with its Python and broker.py, which fault_proxy.py lies beside.
        List<String> control = Endpoint.open().control();
        Path tool = Path.of(control.get(1)).resolveSibling("fault_proxy.py");
        try {
            process = new ProcessBuilder(control.get(0), tool.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        answers = process.inputReader();
        orders = process.outputWriter();
        port = answer();
    }

    /** The suite's connection string, to here. */
    String connectionString() {
        return System.getenv("JITNEY_CONNECTION_STRING")
            .replace(":" + System.getenv("JITNEY_AMQP_PORT"), ":" + port);
    }

    /** Force-detaches every link whose attach holds the text, and says how many there were. */
    int detach(String text) {
        return tell("detach " + text);
    }

    /** Closes every connection, with an error, and says how many there were. */
    int closeAll() {
        return tell("close");
    }

    /** Resets every connection, and says how many there were. */
    int cut() {
        return tell("cut");
    }

    void hold() {
        tell("hold");
    }

    void release() {
        tell("release");
    }

    private int tell(String order) {
        try {
            orders.write(order + "\n");
            orders.flush();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return Integer.parseInt(answer());
    }

    private String answer() {
        try {
            return Objects.requireNonNull(answers.readLine(), "fault_proxy.py has ended");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void close() throws Exception {
        orders.close();
        if (!process.waitFor(5, TimeUnit.SECONDS)) {
            process.destroyForcibly();
        }
    }
}

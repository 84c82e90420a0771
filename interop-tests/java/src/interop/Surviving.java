package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.DeferOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** There is one broker to kill: nothing else runs meanwhile. */
@Isolated
class Surviving extends Scenarios {
    /** Asks the runner's broker to {@code start}, {@code kill} or {@code stop}; fails when it does not. */
    static void broker(String verb) throws Exception {
        String control = Objects.requireNonNull(System.getenv("JITNEY_BROKER_CONTROL"), "no control of the broker");
        List<String> command = new ArrayList<>(List.of(control.split(" ")));
        command.add(verb);
        Process process = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != 0) {
            process.destroyForcibly();
            throw new AssertionError("the broker did not " + verb);
        }
    }

    @Test
    void s72_s73_s74_s75_what_was_acknowledged_survives_the_broker() throws Exception {
        // Clients that outlive the broker (S74).
        ServiceBusSenderClient sender = client.sender("s74");
        ServiceBusReceiverClient receiver = client.receiver("s74");
        sender.sendMessage(message("before"));
        receiver.complete(receiveOne(receiver));

        try (Connection before = new Connection()) {
            before.sender("s72").sendMessages(numbered(5));
            ServiceBusReceiverClient settling = before.receiver("s72");
            List<ServiceBusReceivedMessage> messages = receive(settling, 3);
            settling.complete(messages.get(0));
            settling.defer(messages.get(1), new DeferOptions().setPropertiesToModify(Map.of("attempt", 1)));
            settling.deadLetter(messages.get(2), new DeadLetterOptions().setDeadLetterReason("why"));
            before.sender("s72").scheduleMessage(message("later"), in(Duration.ofHours(1)));
            before.sender("s73").scheduleMessage(message("due"), in(Duration.ofSeconds(2)));
            before.sender("s75").sendMessage(message("abandoned"));
            ServiceBusReceiverClient abandoning = before.receiver("s75");
            abandoning.abandon(receiveOne(abandoning));
        }
        receiveNothing(receiver, Duration.ofSeconds(2));
        broker("kill");
        broker("start");

        try (Connection after = new Connection()) {
            ServiceBusReceiverClient looking = after.receiver("s72");
            List<ServiceBusReceivedMessage> seen = peekAll(looking);
            assertEquals(List.of(2L, 4L, 5L, 6L), numbers(seen));
            assertEquals(List.of("2", "4", "5", "later"), bodies(seen));
            assertEquals(
                List.of(ServiceBusMessageState.DEFERRED, ServiceBusMessageState.ACTIVE, ServiceBusMessageState.ACTIVE,
                    ServiceBusMessageState.SCHEDULED),
                seen.stream().map(ServiceBusReceivedMessage::getState).toList());
            assertEquals(1, looking.receiveDeferredMessage(2).getApplicationProperties().get("attempt"));
            ServiceBusReceivedMessage letter = receiveOne(after.deadLetters("s72"));
            assertEquals("3", letter.getBody().toString());
            assertEquals("why", letter.getDeadLetterReason());
            after.sender("s72").sendMessage(message("next"));
            assertEquals(List.of(4L, 5L, 7L), numbers(receive(looking, 3)));
            assertEquals(List.of("due"), bodies(receive(after.receiver("s73"), 1, Duration.ofSeconds(3))));
        }
        sender.sendMessage(message("after"));
        assertEquals("after", receiveOne(receiver).getBody().toString());

        // In good order, with clients connected (S75): the control fails when the broker's exit code is not 0.
        broker("stop");
        broker("start");
        try (Connection after = new Connection()) {
            ServiceBusReceivedMessage message = receiveOne(after.receiver("s75"));
            assertEquals("abandoned", message.getBody().toString());
            assertEquals(1, message.getDeliveryCount());
        }
    }
}

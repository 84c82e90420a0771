package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.UNAUTHORIZED;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.json.JsonProviders;
import com.azure.json.JsonWriter;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** Token credentials, with tokens of the issuer that the secured broker trusts ({@code identity.py}). */
@Tag("secured")
class Identities extends Scenarios {
    /** A credential with a role, and claims that are not as they should be. */
    private static TokenCredential identity(String role, Map<String, Object> claims, String... options) {
        Map<String, Object> all = new HashMap<>(Map.of("roles", List.of("Azure Service Bus Data " + role)));
        all.putAll(claims);
        StringWriter text = new StringWriter();
        try (JsonWriter writer = JsonProviders.createWriter(text)) {
            writer.writeUntyped(all);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        List<String> command = new ArrayList<>(List.of(System.getenv("JITNEY_TOKEN").split(" ")));
        command.add(text.toString());
        command.addAll(List.of(options));
        String token = Endpoint.run(command).strip();
        return request -> Mono.just(new AccessToken(token, in(Duration.ofHours(1))));
    }

    private static TokenCredential identity(String role) {
        return identity(role, Map.of());
    }

    private static ServiceBusAdministrationClient administrator(TokenCredential who) {
        return new ServiceBusAdministrationClientBuilder().credential(Endpoint.NAMESPACE, who).buildClient();
    }

    private void denies(TokenCredential who) {
        Connection connection = connect(who);
        fails(UNAUTHORIZED, () -> connection.sender("s270").sendMessage(message("denied")));
        fails(UNAUTHORIZED, () -> bodies(connection.receiver("s270").receiveMessages(1, DEADLINE)));
        fails(UNAUTHORIZED, () -> connection.receiver("s270").peekMessage());
    }

    @Test
    void s270_an_identity_does_what_its_roles_say() {
        ServiceBusAdministrationClient owner = administrator(identity("Owner"));
        owner.createQueue("s270");
        assertEquals(10, owner.getQueue("s270").getMaxDeliveryCount());
        roundTrip(connect(identity("Owner")), "s270");
        roundTrip(connect(identity("Owner")).overWebSockets(), "s270");

        Connection sends = connect(identity("Sender"));
        Connection receives = connect(identity("Receiver"));
        sends.sender("s270").sendMessage(message(1));
        assertEquals("1", receiveOne(receives.receiver("s270")).getBody().toString());
        fails(UNAUTHORIZED, () -> bodies(sends.receiver("s270").receiveMessages(1, DEADLINE)));
        fails(UNAUTHORIZED, () -> sends.receiver("s270").peekMessage());
        fails(UNAUTHORIZED, () -> receives.sender("s270").sendMessage(message(2)));

        long hour = Duration.ofHours(1).toSeconds();
        long now = in(Duration.ZERO).toEpochSecond();
        for (Map<String, Object> wrong : List.<Map<String, Object>>of(
                Map.of("aud", "https://vault.azure.net"), Map.of("iss", "https://other.invalid"),
                Map.of("exp", now - hour), Map.of("nbf", now + hour), Map.of("roles", List.of()))) {
            denies(identity("Owner", wrong));
        }
        TokenCredential forged = identity("Owner", Map.of(), "--forged");
        denies(forged);
        for (TokenCredential who : List.of(forged, identity("Sender"))) {
            denies(401, "SubCode=401", () -> administrator(who).createQueue("s270b"));
        }
        assertFalse(owner.getQueueExists("s270b"));
    }
}

package interop;

import com.azure.json.JsonProviders;
import com.azure.json.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.interfaces.RSAPublicKey;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Makes tokens as an identity provider does. */
final class Issuer {
    /** Whom the guarded broker believes. */
    static final String NAME = "https://issuer.invalid/tenant";

    private Issuer() { }

    static KeyPair key() {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
            generator.initialize(2048);
            return generator.generateKeyPair();
        } catch (GeneralSecurityException error) {
            throw new AssertionError(error);
        }
    }

    /** The document by which what a key signed can be verified. */
    static String keySet(KeyPair key) {
        RSAPublicKey half = (RSAPublicKey) key.getPublic();
        return json(Map.of("keys", List.of(Map.of("kty", "RSA", "use", "sig", "alg", "RS256", "kid", "one",
            "n", encoded(half.getModulus()), "e", encoded(half.getPublicExponent())))));
    }

    /** A token for an owner, a sender or a receiver, good for an hour but for what the claims say. */
    static String token(String role, Map<String, Object> claims, KeyPair key) {
        long now = Instant.now().getEpochSecond();
        Map<String, Object> all = new HashMap<>(Map.of(
            "iss", NAME, "aud", "https://servicebus.azure.net", "sub", "somebody",
            "iat", now, "nbf", now, "exp", now + 3_600, "roles", List.of("Azure Service Bus Data " + role)));
        all.putAll(claims);
        String text = encoded(json(Map.of("alg", "RS256", "typ", "JWT", "kid", "one")).getBytes(StandardCharsets.UTF_8))
            + "." + encoded(json(all).getBytes(StandardCharsets.UTF_8));
        try {
            Signature signature = Signature.getInstance("SHA256withRSA");
            signature.initSign(key.getPrivate());
            signature.update(text.getBytes(StandardCharsets.UTF_8));
            return text + "." + encoded(signature.sign());
        } catch (GeneralSecurityException error) {
            throw new AssertionError(error);
        }
    }

    static String json(Object value) {
        StringWriter text = new StringWriter();
        try (JsonWriter writer = JsonProviders.createWriter(text)) {
            writer.writeUntyped(value);
        } catch (IOException error) {
            throw new AssertionError(error);
        }
        return text.toString();
    }

    private static String encoded(BigInteger number) {
        byte[] bytes = number.toByteArray();
        int sign = bytes[0] == 0 ? 1 : 0;
        return encoded(Arrays.copyOfRange(bytes, sign, bytes.length));
    }

    private static String encoded(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }
}

package jms;

import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;

/** This JVM believes the broker's authority, which the broker tells. */
final class Trust {
    private static boolean isDone;

    private Trust() { }

    static synchronized void theBroker() {
        if (isDone) {
            return;
        }
        URI authority = URI.create("http://localhost:" + Scenarios.environment("JITNEY_HTTP_PORT") + "/ca.pem");
        Path file = Path.of(Scenarios.environment("JITNEY_WORK"), "trust.p12");
        try (InputStream told = authority.toURL().openStream(); OutputStream kept = Files.newOutputStream(file)) {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setCertificateEntry("broker", CertificateFactory.getInstance("X.509").generateCertificate(told));
            store.store(kept, "changeit".toCharArray());
        } catch (Exception error) {
            throw new AssertionError("the broker's authority", error);
        }
        System.setProperty("javax.net.ssl.trustStore", file.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "changeit");
        isDone = true;
    }
}

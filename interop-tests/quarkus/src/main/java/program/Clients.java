package program;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.enterprise.inject.Produces;
import org.eclipse.microprofile.config.inject.ConfigProperty;

/** The SDK as a bean that a property describes, which the extension of Quarkiverse has as well. */
@ApplicationScoped
public class Clients {
    @ConfigProperty(name = "servicebus.connection-string")
    String connectionString;

    @Produces
    ServiceBusClientBuilder builder() {
        return new ServiceBusClientBuilder().connectionString(connectionString);
    }
}

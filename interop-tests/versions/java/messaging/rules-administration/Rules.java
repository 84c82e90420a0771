import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import java.util.ArrayList;
import java.util.List;

/** Rules of versions without a client for them over AMQP. */
final class Rules {
    private Rules() { }

    /** Adds a rule for red, lists the rules, and removes the one for everything. */
    static void replace(ServiceBusClientBuilder builder, String topic) {
        ServiceBusAdministrationClient administrator = new ServiceBusAdministrationClientBuilder()
            .connectionString(System.getenv("CONNECTION_STRING")).buildClient();
        CreateRuleOptions options = new CreateRuleOptions(new SqlRuleFilter("color = 'red'"));
        administrator.createRule(topic, "red", "subscription", options);
        List<String> names = new ArrayList<>();
        administrator.listRules(topic, "subscription").forEach(rule -> names.add(rule.getName()));
        Steps.check(names.contains("red"), "the rules are " + names);
        administrator.deleteRule(topic, "subscription", "$Default");
    }
}

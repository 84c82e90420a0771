import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusRuleManagerClient;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import java.util.ArrayList;
import java.util.List;

/** Rules over AMQP. */
final class Rules {
    private Rules() { }

    /** Adds a rule for red, lists the rules, and removes the one for everything. */
    static void replace(ServiceBusClientBuilder builder, String topic) {
        try (ServiceBusRuleManagerClient manager = builder.ruleManager().topicName(topic).subscriptionName("subscription").buildClient()) {
            manager.createRule("red", new CreateRuleOptions(new SqlRuleFilter("color = 'red'")));
            List<String> names = new ArrayList<>();
            manager.listRules().forEach(rule -> names.add(rule.getName()));
            Steps.check(names.contains("red"), "the rules are " + names);
            manager.deleteRule("$Default");
        }
    }
}

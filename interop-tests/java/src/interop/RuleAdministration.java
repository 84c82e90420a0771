package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.http.rest.PagedResponse;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.EmptyRuleAction;
import com.azure.messaging.servicebus.administration.models.FalseRuleFilter;
import com.azure.messaging.servicebus.administration.models.RuleAction;
import com.azure.messaging.servicebus.administration.models.RuleFilter;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.TrueRuleFilter;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A subscription's rules under an administrator's hand, at the secured broker. */
@Tag("secured")
class RuleAdministration extends Scenarios {
    private final ServiceBusAdministrationClient administrator = Endpoint.administrator();
    private final Connection secured = connect(Endpoint.keyed(Endpoint.ROOT, Endpoint.secured().key()));

    /** All rules of a subscription, by name, as texts that can be compared. */
    static Map<String, String> told(ServiceBusAdministrationClient administrator, String topic, String subscription) {
        Map<String, String> rules = new TreeMap<>();
        administrator.listRules(topic, subscription)
            .forEach(rule -> assertNull(rules.put(rule.getName(), told(rule)), rule.getName() + " is listed twice"));
        return rules;
    }

    private static String told(RuleProperties rule) {
        return told(rule.getFilter()) + told(rule.getAction());
    }

    private static String told(RuleFilter filter) {
        if (filter instanceof TrueRuleFilter) {
            return "true";
        }
        if (filter instanceof FalseRuleFilter) {
            return "false";
        }
        if (filter instanceof SqlRuleFilter sql) {
            return sql.getSqlExpression() + " " + new TreeMap<>(sql.getParameters());
        }
        CorrelationRuleFilter fields = (CorrelationRuleFilter) filter;
        Map<String, Object> all = Described.of(fields);
        all.put("Properties", new TreeMap<>(fields.getProperties()));
        all.values().removeIf(value -> value == null || value.equals(Map.of()));
        return all.toString();
    }

    private static String told(RuleAction action) {
        if (action == null || action instanceof EmptyRuleAction) {
            return "";
        }
        SqlRuleAction sql = (SqlRuleAction) action;
        return "; " + sql.getSqlExpression() + " " + new TreeMap<>(sql.getParameters());
    }

    private static SqlRuleFilter sql(String expression, Map<String, Object> parameters) {
        SqlRuleFilter filter = new SqlRuleFilter(expression);
        filter.getParameters().putAll(parameters);
        return filter;
    }

    private static CreateRuleOptions setting(RuleFilter filter, String expression, Map<String, Object> parameters) {
        SqlRuleAction action = new SqlRuleAction(expression);
        action.getParameters().putAll(parameters);
        return new CreateRuleOptions(filter).setAction(action);
    }

    /** The SDK sends and shows every parameter and property as a string. */
    @Test
    void s276_every_filter_and_action_comes_back_as_it_was_made() {
        administrator.createTopic("s276");
        administrator.createSubscription("s276", "a");
        CorrelationRuleFilter properties = new CorrelationRuleFilter();
        properties.getProperties().putAll(Map.of("string", "ü", "number", 7, "double", 0.25, "yes", true));
        Map<String, CreateRuleOptions> rules = Map.of(
            "true", new CreateRuleOptions(new TrueRuleFilter()),
            "false", new CreateRuleOptions(new FalseRuleFilter()),
            "sql", new CreateRuleOptions(new SqlRuleFilter("color = 'r<e>d & \"ü\"' AND n <> 1")),
            "parameters", new CreateRuleOptions(sql("s = @s AND t = @t", Map.of("@s", "ü", "@t", "<t>"))),
            "fields", new CreateRuleOptions(new CorrelationRuleFilter("c").setContentType("ct").setMessageId("m")
                .setReplyTo("r").setReplyToSessionId("rs").setSessionId("x").setLabel("s").setTo("t")),
            "properties", new CreateRuleOptions(properties),
            "action", setting(new TrueRuleFilter(), "SET seen = 'yes'; REMOVE secret", Map.of()),
            "action-parameters",
            setting(new SqlRuleFilter("n = 7"), "SET seen = @seen", Map.of("@seen", "by parameter")));
        Map<String, String> wanted = new TreeMap<>();
        rules.forEach((name, options) -> {
            wanted.put(name, told(options.getFilter()) + told(options.getAction()));
            assertEquals(wanted.get(name), told(administrator.createRule("s276", name, "a", options)), name);
            RuleProperties found = administrator.getRule("s276", "a", name);
            assertEquals(name, found.getName());
            assertEquals(wanted.get(name), told(found), name);
        });
        administrator.deleteRule("s276", "a", "$Default");
        assertEquals(wanted, told(administrator, "s276", "a"));

        RuleProperties other = administrator.getRule("s276", "a", "sql")
            .setFilter(new FalseRuleFilter()).setAction(new SqlRuleAction("REMOVE n"));
        assertEquals("false; REMOVE n {}", told(administrator.updateRule("s276", "a", other)));
        assertEquals("false; REMOVE n {}", told(administrator.getRule("s276", "a", "sql")));
        // The name of the default rule is free again.
        administrator.createRule("s276", "$Default", "a", new CreateRuleOptions(new SqlRuleFilter("n = 8")));
        assertEquals("n = 8 {}", told(administrator.getRule("s276", "a", "$Default")));
        // A first rule without a name is the default rule.
        administrator.createSubscription("s276", "unnamed", null, new CreateSubscriptionOptions(),
            new CreateRuleOptions(new SqlRuleFilter("n = 9")));
        assertEquals(Map.of("$Default", "n = 9 {}"), told(administrator, "s276", "unnamed"));
    }

    @Test
    void s276_rules_are_listed_in_pages() {
        administrator.createTopic("s276p");
        administrator.createSubscription("s276p", "a");
        for (int n = 100; n < 220; n += 1) {
            administrator.createRule("s276p", "rule-" + n, "a", new CreateRuleOptions(new SqlRuleFilter("n = " + n)));
        }
        List<Integer> sizes = administrator.listRules("s276p", "a").streamByPage()
            .map(PagedResponse::getElements).map(page -> (int) page.stream().count()).toList();
        assertEquals(List.of(100, 21), sizes);
        Map<String, String> rules = told(administrator, "s276p", "a");
        assertEquals(121, rules.size());
        assertEquals("n = 219 {}", rules.get("rule-219"));
    }

    private static ServiceBusMessage numbered(String body, String n) {
        ServiceBusMessage message = message(body);
        message.getApplicationProperties().put("n", n);
        return message;
    }

    @Test
    void s277_rules_made_by_an_administrator_are_at_work_at_once() {
        administrator.createTopic("s277");
        administrator.createSubscription("s277", "a");
        ServiceBusSenderClient sender = secured.topicSender("s277");
        sender.sendMessage(numbered("before", "1"));
        administrator.createRule("s277", "small", "a",
            setting(sql("n = @one", Map.of("@one", "1")), "SET size = @size", Map.of("@size", "small")));
        administrator.deleteRule("s277", "a", "$Default");
        sender.sendMessage(numbered("small", "1"));
        sender.sendMessage(numbered("large", "20"));
        CorrelationRuleFilter twenty = new CorrelationRuleFilter();
        twenty.getProperties().put("n", "20");
        administrator.updateRule("s277", "a",
            administrator.getRule("s277", "a", "small").setFilter(twenty).setAction(null));
        sender.sendMessage(numbered("again", "1"));
        sender.sendMessage(numbered("twenty", "20"));
        administrator.deleteRule("s277", "a", "small");
        sender.sendMessage(numbered("after", "20"));
        List<ServiceBusReceivedMessage> messages = peekAll(secured.receiver("s277/a"));
        assertEquals(List.of("before", "small", "twenty"), bodies(messages));
        assertEquals("small", messages.get(1).getApplicationProperties().get("size"));
        assertEquals(Map.of("n", "20"), messages.get(2).getApplicationProperties());
    }

    @Test
    void s283_what_is_no_rule_is_refused() {
        administrator.createTopic("s283r");
        administrator.createSubscription("s283r", "a");
        for (CreateRuleOptions options : List.of(
                new CreateRuleOptions(new SqlRuleFilter("SELECT * FROM")),
                new CreateRuleOptions(new CorrelationRuleFilter()),
                setting(new TrueRuleFilter(), "JUMP", Map.of()))) {
            denies(400, "SubCode=400", () -> administrator.createRule("s283r", "bad", "a", options));
        }
        RuleProperties there = administrator.getRule("s283r", "a", "$Default");
        there.setFilter(new SqlRuleFilter("n ="));
        denies(400, "SubCode=400", () -> administrator.updateRule("s283r", "a", there));
        assertEquals(Map.of("$Default", "true"), told(administrator, "s283r", "a"));
        assertTrue(administrator.getSubscriptionExists("s283r", "a"));
    }
}

package interop;

import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGING_ENTITY_ALREADY_EXISTS;
import static com.azure.messaging.servicebus.ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusRuleManagerClient;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.FalseRuleFilter;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.TrueRuleFilter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class Rules extends Scenarios {
    /** A message of S162, and which subscriptions get it (scenarios.md). */
    private record Row(String subject, String id, Map<String, Object> properties, String at) { }

    private static final List<Row> TABLE = List.of(
        new Row("subject", "m-1", Map.of("color", "red", "size", 1), "eq in like exists or math sys user keyword"),
        new Row("other", "m-2", Map.of("color", "red", "size", 5), "eq between in like exists paren user"),
        new Row("subject", "x-3", Map.of("color", "green", "size", 10), "ne between in exists paren"),
        new Row(null, "m-4", Map.of("color", "blue", "size", 11, "urgent", true), "ne gt notin exists or paren bool"),
        new Row(null, "m-5", Map.of("size", 1, "urgent", false), "isnull exists or math"),
        new Row(null, "m-6", Map.of("color", "Red", "note", "50% off"), "ne notin escape paren"),
        new Row(null, "m-7", Map.of("note", "500", "strange name", 1), "isnull quoted"),
        new Row(null, "m-8", Map.of("color", "rust", "size", "20"), "ne notin like exists paren"));

    private static final String SUBSCRIPTIONS =
        "eq ne gt between in notin like escape isnull exists or paren math bool quoted sys user keyword";

    private static ServiceBusMessage having(Map<String, Object> properties, int body) {
        ServiceBusMessage message = message(body);
        message.getApplicationProperties().putAll(properties);
        return message;
    }

    /** What a subscription has. A publish is whole when it is acknowledged: there is nothing to wait for. */
    private List<ServiceBusReceivedMessage> held(String subscription) {
        return peekAll(client.receiver(subscription));
    }

    private static Map<String, RuleProperties> listed(ServiceBusRuleManagerClient manager) {
        Map<String, RuleProperties> rules = new TreeMap<>();
        manager.listRules().forEach(rule -> assertNull(rules.put(rule.getName(), rule)));
        return rules;
    }

    private static CreateRuleOptions sql(String expression) {
        return new CreateRuleOptions(new SqlRuleFilter(expression));
    }

    @Test
    void s161_a_rule_takes_all_or_none_and_no_rule_in_the_file_takes_all() {
        client.topicSender("s161").sendMessages(numbered(2));
        assertEquals(texts(1, 2), bodies(held("s161/all")));
        assertEquals(texts(1, 2), bodies(held("s161/every")));
        assertEquals(List.of(), bodies(held("s161/none")));
    }

    @Test
    void s162_sql_filters_take_what_they_say() {
        List<ServiceBusMessage> messages = new ArrayList<>();
        for (Row row : TABLE) {
            messages.add(having(row.properties, messages.size() + 1).setSubject(row.subject).setMessageId(row.id));
        }
        client.topicSender("s162").sendMessages(messages);
        for (String subscription : SUBSCRIPTIONS.split(" ")) {
            List<String> wanted = new ArrayList<>();
            for (Row row : TABLE) {
                if (Arrays.asList(row.at.split(" ")).contains(subscription)) {
                    wanted.add(String.valueOf(TABLE.indexOf(row) + 1));
                }
            }
            assertEquals(wanted, bodies(held("s162/" + subscription)), subscription);
        }
    }

    @Test
    void s163_correlation_filters_compare_with_case_and_type() {
        ServiceBusMessage matching = having(Map.of("color", "red", "size", 1), 1)
            .setCorrelationId("c1").setSubject("s1").setMessageId("m1").setTo("t1").setReplyTo("r1")
            .setReplyToSessionId("rs1").setSessionId("x1").setContentType("text/plain");
        ServiceBusMessage other = having(Map.of("color", "blue", "size", 2), 2)
            .setCorrelationId("o").setSubject("o").setMessageId("o").setTo("o").setReplyTo("o")
            .setReplyToSessionId("o").setSessionId("o").setContentType("o");
        ServiceBusMessage close = having(Map.of("color", "red", "size", "1"), 4).setSubject("S1");
        client.topicSender("s163").sendMessages(List.of(matching, other, message(3), close));
        for (String subscription : "id label mid to reply rsid sid type prop both".split(" ")) {
            List<String> wanted = subscription.equals("prop") ? List.of("1", "4") : List.of("1");
            assertEquals(wanted, bodies(held("s163/" + subscription)), subscription);
        }
    }

    @Test
    void s164_an_action_changes_the_copy_and_no_other() {
        Map<String, Object> properties = Map.of("n", 1, "secret", "x");
        client.topicSender("s164").sendMessage(having(properties, 1).setSubject("s"));
        ServiceBusReceivedMessage changed = held("s164/act").get(0);
        assertEquals("changed", changed.getSubject());
        assertEquals("yes", changed.getApplicationProperties().get("urgent"));
        assertEquals(2, ((Number) changed.getApplicationProperties().get("n")).intValue());
        assertFalse(changed.getApplicationProperties().containsKey("secret"));
        assertEquals("change", changed.getApplicationProperties().get("RuleName"));
        ServiceBusReceivedMessage plain = held("s164/plain").get(0);
        assertEquals("s", plain.getSubject());
        assertEquals(properties, plain.getApplicationProperties());
    }

    @Test
    void s165_rules_without_actions_make_one_copy_and_each_with_an_action_one_more() {
        for (int n = 1; n <= 2; n += 1) {
            client.topicSender("s165").sendMessage(with("n", n));
        }
        List<ServiceBusReceivedMessage> copies = held("s165/five");
        assertEquals(List.of("1", "1", "1", "2"), bodies(copies));
        assertEquals(range(1, 4), numbers(copies));
        assertEquals(List.of(1L, 1L, 1L, 2L),
            copies.stream().map(ServiceBusReceivedMessage::getEnqueuedSequenceNumber).toList());
        List<String> sources = copies.stream().map(ServiceBusReceivedMessage::getApplicationProperties)
            .map(each -> each.get("source") + " " + each.get("RuleName")).toList();
        assertEquals(List.of("null null", "r4 r4", "r5 r5"),
            sources.subList(0, 3).stream().sorted(Comparator.naturalOrder()).toList());
        assertEquals("null null", sources.get(3));
    }

    @Test
    void s166_of_a_batch_those_that_match() {
        client.topicSender("s166").sendMessages(List.of(with("n", 1).setSubject("first"), with("n", 2),
            with("n", 1).setSubject("third"), message("none")));
        List<ServiceBusReceivedMessage> messages = receive(client.receiver("s166/some"), 2);
        assertEquals(List.of("first", "third"), messages.stream().map(ServiceBusReceivedMessage::getSubject).toList());
        assertEquals(range(1, 2), numbers(messages));
    }

    @Test
    void s167_an_error_of_a_filter_makes_a_dead_letter_where_that_is_wanted() {
        client.topicSender("s167").sendMessages(List.of(with("n", 2), with("n", 0), message("none")));
        assertEquals(List.of("2"), bodies(held("s167/strict")));
        assertEquals(List.of("2"), bodies(held("s167/lax")));
        List<ServiceBusReceivedMessage> letters = peekAll(client.deadLetters("s167/strict"));
        assertEquals(List.of("0"), bodies(letters));
        assertFalse(letters.get(0).getDeadLetterReason().isEmpty());
        assertFalse(letters.get(0).getDeadLetterErrorDescription().isEmpty());
        assertEquals(List.of(), peekAll(client.deadLetters("s167/lax")));
    }

    @Test
    void s168_rules_are_listed_added_and_removed() {
        ServiceBusRuleManagerClient manager = client.rules("s168/a");
        Map<String, RuleProperties> rules = listed(manager);
        assertEquals(List.of("$Default"), List.copyOf(rules.keySet()));
        assertInstanceOf(TrueRuleFilter.class, rules.get("$Default").getFilter());

        CorrelationRuleFilter red = new CorrelationRuleFilter();
        red.getProperties().put("color", "red");
        manager.createRule("small", sql("n < 10").setAction(new SqlRuleAction("SET size = 'small'")));
        manager.createRule("red", new CreateRuleOptions(red));
        manager.deleteRule("$Default");
        rules = listed(manager);
        assertEquals(List.of("red", "small"), List.copyOf(rules.keySet()));
        assertEquals("n < 10", ((SqlRuleFilter) rules.get("small").getFilter()).getSqlExpression());
        assertEquals("SET size = 'small'", ((SqlRuleAction) rules.get("small").getAction()).getSqlExpression());
        assertEquals(Map.of("color", "red"), ((CorrelationRuleFilter) rules.get("red").getFilter()).getProperties());

        client.topicSender("s168").sendMessages(
            List.of(having(Map.of("n", 1), 1), having(Map.of("n", 20), 2), having(Map.of("n", 20, "color", "red"), 3)));
        List<ServiceBusReceivedMessage> messages = held("s168/a");
        assertEquals(List.of("1", "3"), bodies(messages));
        assertEquals("small", messages.get(0).getApplicationProperties().get("size"));
        assertNull(messages.get(1).getApplicationProperties().get("size"));
    }

    @Test
    void s169_what_is_there_what_is_not_and_what_is_no_rule_is_refused() {
        ServiceBusRuleManagerClient manager = client.rules("s169/a");
        manager.createRule("twice", sql("1=1"));
        fails(MESSAGING_ENTITY_ALREADY_EXISTS, () -> manager.createRule("twice", sql("1=0")));
        fails(MESSAGING_ENTITY_NOT_FOUND, () -> manager.deleteRule("no-such"));
        refuses("", () -> manager.createRule("bad", sql("SELECT * FROM")));
        refuses("", () -> manager.createRule("bad2", sql("1=1").setAction(new SqlRuleAction("JUMP"))));
        assertEquals(List.of("$Default", "twice"), List.copyOf(listed(manager).keySet()));
        for (int n = 0; n < 120; n += 1) {
            manager.createRule("rule-" + n, sql("n = " + n));
        }
        assertEquals(122, listed(manager).size());
    }

    @Test
    void s171_every_field_and_type_of_a_correlation_filter_comes_back_and_is_compared() {
        ServiceBusRuleManagerClient manager = client.rules("s171/a");
        CorrelationRuleFilter filter = new CorrelationRuleFilter("c").setMessageId("m").setTo("t").setReplyTo("r")
            .setLabel("s").setSessionId("i").setReplyToSessionId("rs").setContentType("ct");
        Map<String, Object> properties = new HashMap<>(Map.of(
            "string", "ü", "int", -3, "long", 1L << 40, "double", 1.5, "yes", true, "no", false,
            "uuid", new UUID(1L << 63, 5)));
        filter.getProperties().putAll(properties);
        manager.createRule("full", new CreateRuleOptions(filter));
        manager.createRule("never", new CreateRuleOptions(new FalseRuleFilter()));
        manager.deleteRule("$Default");
        Map<String, RuleProperties> rules = listed(manager);
        assertEquals(List.of("full", "never"), List.copyOf(rules.keySet()));
        CorrelationRuleFilter there = (CorrelationRuleFilter) rules.get("full").getFilter();
        assertEquals(filter.toString(), there.toString());
        // The SDK shows every value as a string.
        properties.forEach((key, value) -> assertEquals(value.toString(), there.getProperties().get(key), key));
        assertEquals("1=0", ((SqlRuleFilter) rules.get("never").getFilter()).getSqlExpression());

        List<Consumer<ServiceBusMessage>> changes = new ArrayList<>(List.of(
            each -> each.setCorrelationId("o"), each -> each.setMessageId("o"), each -> each.setTo("o"),
            each -> each.setReplyTo("o"), each -> each.setSubject("o"), each -> each.setSessionId("o"),
            each -> each.setReplyToSessionId("o"), each -> each.setContentType("o")));
        properties.keySet().forEach(key -> changes.add(each -> each.getApplicationProperties().put(key, "other")));
        changes.add(each -> { });
        List<ServiceBusMessage> messages = new ArrayList<>();
        for (Consumer<ServiceBusMessage> change : changes) {
            ServiceBusMessage message = having(properties, messages.size()).setCorrelationId("c").setMessageId("m")
                .setTo("t").setReplyTo("r").setSubject("s").setSessionId("i").setReplyToSessionId("rs").setContentType("ct");
            change.accept(message);
            messages.add(message);
        }
        client.topicSender("s171").sendMessages(messages);
        assertEquals(List.of(String.valueOf(changes.size() - 1)), bodies(held("s171/a")));
    }

    @Test
    void s172_an_action_moves_a_message_to_another_session() {
        client.topicSender("s172").sendMessage(inSession("x", "1"));
        ServiceBusReceivedMessage message = receiveOne(client.session("s172/s", "moved"));
        assertEquals("1", message.getBody().toString());
        assertEquals("moved", message.getSessionId());
    }
}

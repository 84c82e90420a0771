namespace Interop;

/// <summary>Rules, as Rules.cs: every field of a correlation filter, and an action on the session.</summary>
class RulesMore : MoreScenarios
{
    [Scenario("S171", "every field and type of a correlation filter comes back and is compared")]
    public async Task EveryFieldAndTypeOfACorrelationFilterComesBackAndIsCompared()
    {
        var properties = new Dictionary<string, object>
        {
            ["string"] = "ü", ["int"] = -3, ["long"] = 1L << 40, ["double"] = 1.5, ["yes"] = true, ["no"] = false,
            ["uuid"] = new Guid("80000000-0000-0000-0000-000000000005"),
            ["time"] = new DateTime(2026, 1, 2, 3, 4, 5, 678, DateTimeKind.Utc),
        };
        var filter = new CorrelationRuleFilter
        {
            CorrelationId = "c", MessageId = "m", To = "t", ReplyTo = "r", Subject = "s", SessionId = "i",
            ReplyToSessionId = "rs",
            ContentType = "ct",
        };
        foreach (var (name, value) in properties)
        {
            filter.ApplicationProperties[name] = value;
        }
        await using var manager = Client.CreateRuleManager("s171", "a");
        await manager.CreateRuleAsync("full", filter);
        await manager.CreateRuleAsync("never", new FalseRuleFilter());
        await manager.DeleteRuleAsync("$Default");
        var rules = new Dictionary<string, RuleProperties>();
        await foreach (var rule in manager.GetRulesAsync())
        {
            rules.Add(rule.Name, rule);
        }
        Check.Equal(["full", "never"], Sorted(rules.Keys));
        var there = (CorrelationRuleFilter)rules["full"].Filter;
        Check.Equal(filter.ToString(), there.ToString());
        Check.Equal(Sorted(properties.Keys), Sorted(there.ApplicationProperties.Keys));
        foreach (var (name, value) in properties)
        {
            Check.Equal(value, there.ApplicationProperties[name]);
        }
        // The SDK sends a false filter as SQL.
        Check.Equal("1=0", ((SqlRuleFilter)rules["never"].Filter).SqlExpression);

        List<Action<ServiceBusMessage>> changes =
        [
            each => each.CorrelationId = "o", each => each.MessageId = "o", each => each.To = "o",
            each => each.ReplyTo = "o",
            each => each.Subject = "o", each => each.SessionId = "o", each => each.ReplyToSessionId = "o",
            each => each.ContentType = "o",
            .. properties.Keys.Select(name =>
                (Action<ServiceBusMessage>)(each => each.ApplicationProperties[name] = "other")),
            _ => { },
        ];
        var messages = new List<ServiceBusMessage>();
        foreach (var change in changes)
        {
            var message = new ServiceBusMessage($"{messages.Count}")
            {
                CorrelationId = "c", MessageId = "m", To = "t", ReplyTo = "r", Subject = "s", SessionId = "i",
                ReplyToSessionId = "rs",
                ContentType = "ct",
            };
            foreach (var (name, value) in properties)
            {
                message.ApplicationProperties[name] = value;
            }
            change(message);
            messages.Add(message);
        }
        await Client.CreateSender("s171").SendMessagesAsync(messages);
        Check.Equal([$"{changes.Count - 1}"], Bodies(await PeekAll(Client.CreateReceiver("s171", "a"))));
    }

    [Scenario("S172", "an action moves a message to another session")]
    public async Task AnActionMovesAMessageToAnotherSession()
    {
        await Send("s172", InSession("x", 1));
        var message = await ReceiveOne(await Client.AcceptSessionAsync("s172", "s", "moved"));
        Check.Equal("1", message.Body.ToString());
        Check.Equal("moved", message.SessionId);
    }
}

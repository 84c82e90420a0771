namespace Interop;

/// <summary>A subscription's rules under an administrator's hand, at the secured broker.</summary>
class RuleAdministration : SecuredScenarios
{
    /// <summary>All rules of a subscription, in the order of their names, as texts.</summary>
    public static async Task<List<string>> Rules(string topic, string subscription,
        ServiceBusAdministrationClient? administrator = null)
    {
        var rules = await All((administrator ?? Administrator).GetRulesAsync(topic, subscription));
        return Sorted(rules.Select(rule => $"{rule.Name}: {Described.Of(rule.Filter, rule.Action)}"));
    }

    static SqlRuleFilter Sql(string expression, params (string Name, object Value)[] parameters)
    {
        var filter = new SqlRuleFilter(expression);
        Array.ForEach(parameters, each => filter.Parameters.Add(each.Name, each.Value));
        return filter;
    }

    static SqlRuleAction Setting(string expression, params (string Name, object Value)[] parameters)
    {
        var action = new SqlRuleAction(expression);
        Array.ForEach(parameters, each => action.Parameters.Add(each.Name, each.Value));
        return action;
    }

    static readonly (string Name, object Value)[] Typed =
    [
        ("@boolean", true), ("@date", new DateTime(2026, 1, 2, 3, 4, 5, DateTimeKind.Utc)), ("@double", 0.25),
        ("@int", 7),
        ("@long", 1L << 40), ("@string", "<ü> & \"s\""),
    ];

    [Scenario("S276", "every filter and action comes back as it was made")]
    public async Task EveryFilterAndActionComesBackAsItWasMade()
    {
        await Administrator.CreateTopicAsync("s276");
        await Administrator.CreateSubscriptionAsync("s276", "a");
        var properties = new CorrelationRuleFilter();
        Array.ForEach(Typed, each => properties.ApplicationProperties.Add(each.Name[1..], each.Value));
        var fields = new CorrelationRuleFilter("c")
        {
            ContentType = "ct", MessageId = "m", ReplyTo = "r", ReplyToSessionId = "rs", SessionId = "x", Subject = "s",
            To = "t",
        };
        var wanted = new List<string>();
        foreach (var rule in new CreateRuleOptions[]
        {
            new("true", new TrueRuleFilter()), new("false", new FalseRuleFilter()),
            new("sql", Sql("color = 'r<e>d & \"ü\"' AND n <> 1")),
            new("parameters", Sql("s = @string AND n = @int OR @boolean", Typed)), new("fields", fields),
            new("properties", properties),
            new("action", new TrueRuleFilter()) { Action = Setting("SET seen = 'yes'; REMOVE secret") },
            new("action-parameters", Sql("n = 7")) { Action = Setting("SET seen = @string; SET n = @long", Typed) },
        })
        {
            var told = Described.Of(rule.Filter, rule.Action);
            RuleProperties made = await Administrator.CreateRuleAsync("s276", "a", rule);
            Check.Equal(told, Described.Of(made.Filter, made.Action));
            RuleProperties found = await Administrator.GetRuleAsync("s276", "a", rule.Name);
            Check.Equal($"{rule.Name}: {told}", $"{found.Name}: {Described.Of(found.Filter, found.Action)}");
            wanted.Add($"{rule.Name}: {told}");
        }
        await Administrator.DeleteRuleAsync("s276", "a", "$Default");
        Check.Equal(Sorted(wanted), await Rules("s276", "a"));

        RuleProperties other = await Administrator.GetRuleAsync("s276", "a", "sql");
        other.Filter = new FalseRuleFilter();
        other.Action = Setting("REMOVE n");
        other = await Administrator.UpdateRuleAsync("s276", "a", other);
        Check.Equal("false; REMOVE n", Described.Of(other.Filter, other.Action));
        // The name of the default rule is free again, and is that of a rule without a name.
        await Administrator.CreateRuleAsync("s276", "a", new CreateRuleOptions { Filter = Sql("n = 8") });
        Check.True((await Rules("s276", "a")).Contains("$Default: n = 8"), "no default rule");
        await Administrator.CreateSubscriptionAsync(new CreateSubscriptionOptions("s276", "unnamed"),
            new CreateRuleOptions { Filter = Sql("n = 9") });
        Check.Equal(["$Default: n = 9"], await Rules("s276", "unnamed"));
    }

    [Scenario("S276", "rules are listed in pages")]
    public async Task RulesAreListedInPages()
    {
        await Administrator.CreateTopicAsync("s276p");
        await Administrator.CreateSubscriptionAsync("s276p", "a");
        foreach (var some in Enumerable.Range(100, 120).Chunk(20))
        {
            await Task.WhenAll(
                some.Select(n =>
                Administrator.CreateRuleAsync("s276p", "a", new CreateRuleOptions($"rule-{n}", Sql($"n = {n}")))));
        }
        var sizes = new List<int>();
        await foreach (var page in Administrator.GetRulesAsync("s276p", "a").AsPages())
        {
            sizes.Add(page.Values.Count);
        }
        Check.Equal([100, 21], sizes);
        var rules = await Rules("s276p", "a");
        Check.Equal(["$Default: true", .. Enumerable.Range(100, 120).Select(n => $"rule-{n}: n = {n}")], rules);
    }

    [Scenario("S277", "rules made by an administrator are at work at once")]
    public async Task RulesMadeByAnAdministratorAreAtWorkAtOnce()
    {
        await Administrator.CreateTopicAsync("s277");
        await Administrator.CreateSubscriptionAsync("s277", "a");
        var client = WithRoot();
        var sender = client.CreateSender("s277");
        Task SendIt(string body, int n) =>
            sender.SendMessageAsync(new ServiceBusMessage(body) { ApplicationProperties = { ["n"] = n } });
        await SendIt("before", 1);
        await Administrator.CreateRuleAsync("s277", "a", new CreateRuleOptions("small", Sql("n = @one", ("@one", 1)))
        {
            Action = Setting("SET size = @size", ("@size", "small")),
        });
        await Administrator.DeleteRuleAsync("s277", "a", "$Default");
        await SendIt("small", 1);
        await SendIt("large", 20);
        RuleProperties rule = await Administrator.GetRuleAsync("s277", "a", "small");
        rule.Filter = new CorrelationRuleFilter { ApplicationProperties = { ["n"] = 20 } };
        rule.Action = null;
        await Administrator.UpdateRuleAsync("s277", "a", rule);
        await SendIt("again", 1);
        await SendIt("twenty", 20);
        await Administrator.DeleteRuleAsync("s277", "a", "small");
        await SendIt("after", 20);
        var messages = await PeekAll(client.CreateReceiver("s277", "a"));
        Check.Equal(["before", "small", "twenty"], Bodies(messages));
        Check.Equal("small", (string)messages[1].ApplicationProperties["size"]);
        Check.Equal(["n"], messages[2].ApplicationProperties.Keys.ToList());
    }

    [Scenario("S283", "what is no rule is refused")]
    public async Task WhatIsNoRuleIsRefused()
    {
        await Administrator.CreateTopicAsync("s283r");
        await Administrator.CreateSubscriptionAsync("s283r", "a");
        foreach (var rule in new CreateRuleOptions[]
        {
            new("bad", Sql("SELECT * FROM")), new("bad", new CorrelationRuleFilter()),
            new("bad", new TrueRuleFilter()) { Action = Setting("JUMP") },
        })
        {
            await Denies(400, "SubCode=400", () => Administrator.CreateRuleAsync("s283r", "a", rule));
        }
        RuleProperties there = await Administrator.GetRuleAsync("s283r", "a", "$Default");
        there.Filter = Sql("n =");
        await Denies(400, "SubCode=400", () => Administrator.UpdateRuleAsync("s283r", "a", there));
        Check.Equal(["$Default: true"], await Rules("s283r", "a"));
    }
}

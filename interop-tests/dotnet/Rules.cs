namespace Interop;

class Rules : Scenarios
{
    /// <summary>The messages of S162, and which subscriptions get each (scenarios.md).</summary>
    static readonly (string? Subject, string Id, Dictionary<string, object> Properties, string At)[] Table =
    [
        ("subject", "m-1", new() { ["color"] = "red", ["size"] = 1 }, "eq in like exists or math sys user keyword"),
        ("other", "m-2", new() { ["color"] = "red", ["size"] = 5 }, "eq between in like exists paren user"),
        ("subject", "x-3", new() { ["color"] = "green", ["size"] = 10 }, "ne between in exists paren"),
        (null, "m-4", new() { ["color"] = "blue", ["size"] = 11, ["urgent"] = true },
            "ne gt notin exists or paren bool"),
        (null, "m-5", new() { ["size"] = 1, ["urgent"] = false }, "isnull exists or math"),
        (null, "m-6", new() { ["color"] = "Red", ["note"] = "50% off" }, "ne notin escape paren"),
        (null, "m-7", new() { ["note"] = "500", ["strange name"] = 1 }, "isnull quoted"),
        (null, "m-8", new() { ["color"] = "rust", ["size"] = "20" }, "ne notin like exists paren"),
    ];

    const string Subscriptions =
        "eq ne gt between in notin like escape isnull exists or paren math bool quoted sys user keyword";

    static ServiceBusMessage Having(int body, Dictionary<string, object> properties)
    {
        var message = Message(body);
        foreach (var (name, value) in properties)
        {
            message.ApplicationProperties[name] = value;
        }
        return message;
    }

    /// <summary>
    /// What a subscription has. A publish is whole when it is acknowledged: there is nothing to wait for.
    /// </summary>
    Task<List<ServiceBusReceivedMessage>> Held(string topic, string subscription,
        ServiceBusReceiverOptions? options = null) =>
        PeekAll(Client.CreateReceiver(topic, subscription, options ?? new()));

    async Task SendTogether(string topic, params ServiceBusMessage[] messages)
    {
        await using var sender = Client.CreateSender(topic);
        await sender.SendMessagesAsync(messages);
    }

    /// <summary>The rules of a subscription, by name.</summary>
    internal static async Task<SortedDictionary<string, RuleProperties>> Listed(ServiceBusRuleManager manager)
    {
        var rules = new SortedDictionary<string, RuleProperties>(StringComparer.Ordinal);
        await foreach (var rule in manager.GetRulesAsync())
        {
            rules.Add(rule.Name, rule);
        }
        return rules;
    }

    [Scenario("S161", "a rule takes all or none, and no rule in the file takes all")]
    public async Task ARuleTakesAllOrNone()
    {
        await SendNumbered("s161", 2);
        Check.Equal(Texts(1, 2), Bodies(await Held("s161", "all")));
        Check.Equal(Texts(1, 2), Bodies(await Held("s161", "every")));
        Check.Equal(0, (await Held("s161", "none")).Count);
    }

    [Scenario("S162", "SQL filters take what they say")]
    public async Task SqlFiltersTakeWhatTheySay()
    {
        var messages = Table.Select((row, index) =>
        {
            var message = Having(index + 1, row.Properties);
            message.MessageId = row.Id;
            if (row.Subject != null)
            {
                message.Subject = row.Subject;
            }
            return message;
        });
        await SendTogether("s162", [.. messages]);
        foreach (var subscription in Subscriptions.Split(' '))
        {
            var wanted = Enumerable.Range(1, Table.Length)
                .Where(number => Table[number - 1].At.Split(' ').Contains(subscription));
            var got = Bodies(await Held("s162", subscription));
            Check.Equal($"{subscription} {string.Join(' ', wanted)}", $"{subscription} {string.Join(' ', got)}");
        }
    }

    [Scenario("S163", "correlation filters compare with case and type")]
    public async Task CorrelationFiltersCompareWithCaseAndType()
    {
        ServiceBusMessage Full(int body, string color, object size, params string[] values)
        {
            var message = Having(body, new() { ["color"] = color, ["size"] = size });
            (message.CorrelationId, message.Subject, message.MessageId) = (values[0], values[1], values[2]);
            (message.To, message.ReplyTo, message.ReplyToSessionId) = (values[3], values[4], values[5]);
            (message.SessionId, message.ContentType) = (values[6], values[7]);
            return message;
        }
        var close = Having(4, new() { ["color"] = "red", ["size"] = "1" });
        close.Subject = "S1";
        await SendTogether("s163", Full(1, "red", 1, "c1", "s1", "m1", "t1", "r1", "rs1", "x1", "text/plain"),
            Full(2, "blue", 2, [.. Enumerable.Repeat("o", 8)]), Message(3), close);
        foreach (var subscription in "id label mid to reply rsid sid type prop both".Split(' '))
        {
            var wanted = subscription == "prop" ? "1 4" : "1";
            Check.Equal($"{subscription} {wanted}",
                $"{subscription} {string.Join(' ', Bodies(await Held("s163", subscription)))}");
        }
    }

    [Scenario("S164", "an action changes the copy and no other")]
    public async Task AnActionChangesTheCopyAndNoOther()
    {
        var sent = Having(1, new() { ["n"] = 1, ["secret"] = "x" });
        sent.Subject = "s";
        await Send("s164", sent);
        var changed = (await Held("s164", "act"))[0];
        Check.Equal("changed", changed.Subject);
        Check.Equal<object>("yes", changed.ApplicationProperties["urgent"]);
        Check.Equal(2L, Convert.ToInt64(changed.ApplicationProperties["n"]));
        Check.True(!changed.ApplicationProperties.ContainsKey("secret"), "the property is there");
        Check.Equal<object>("change", changed.ApplicationProperties["RuleName"]);
        var plain = (await Held("s164", "plain"))[0];
        Check.Equal("s", plain.Subject);
        Check.Equal(["n", "secret"], plain.ApplicationProperties.Keys.Order());
        Check.Equal<object>(1, plain.ApplicationProperties["n"]);
    }

    [Scenario("S165", "rules without actions make one copy, and each with an action one more")]
    public async Task RulesWithoutActionsMakeOneCopy()
    {
        await Send("s165", With("n", 1), With("n", 2));
        var copies = await Held("s165", "five");
        Check.Equal(["1", "1", "1", "2"], Bodies(copies));
        Check.Equal(Range(1, 4), Numbers(copies));
        Check.Equal([1L, 1, 1, 2], copies.Select(each => each.EnqueuedSequenceNumber));
        string Told(ServiceBusReceivedMessage message) => string.Join(' ',
            new[] { "source", "RuleName" }.Select(name => message.ApplicationProperties.TryGetValue(name, out var value)
                ? value : "-"));
        Check.Equal(["- -", "r4 r4", "r5 r5"], copies.Take(3).Select(Told).Order(StringComparer.Ordinal));
        Check.Equal("- -", Told(copies[3]));
    }

    [Scenario("S166", "of a batch those that match")]
    public async Task OfABatchThoseThatMatch()
    {
        var messages = new[] { With("n", 1), With("n", 2), With("n", 1), Message("none") };
        messages[0].Subject = "first";
        messages[2].Subject = "third";
        await SendTogether("s166", messages);
        var got = await Receive(Client.CreateReceiver("s166", "some"), 2);
        Check.Equal(["first", "third"], got.Select(each => each.Subject));
        Check.Equal(Range(1, 2), Numbers(got));
    }

    [Scenario("S167", "an error of a filter makes a dead letter where that is wanted")]
    public async Task AnErrorOfAFilterMakesADeadLetter()
    {
        await SendTogether("s167", With("n", 2), With("n", 0), Message("none"));
        Check.Equal(["2"], Bodies(await Held("s167", "strict")));
        Check.Equal(["2"], Bodies(await Held("s167", "lax")));
        var letters = await Held("s167", "strict", DeadLetters);
        Check.Equal(["0"], Bodies(letters));
        Check.True(letters[0].DeadLetterReason.Length > 0 && letters[0].DeadLetterErrorDescription.Length > 0,
            "no reason or description");
        Check.Equal(0, (await Held("s167", "lax", DeadLetters)).Count);
    }

    [Scenario("S168", "rules are listed, added and removed")]
    public async Task RulesAreListedAddedAndRemoved()
    {
        await using var manager = Client.CreateRuleManager("s168", "a");
        var rules = await Listed(manager);
        Check.Equal([CreateRuleOptions.DefaultRuleName], rules.Keys);
        Check.True(rules[RuleProperties.DefaultRuleName].Filter is TrueRuleFilter, $"{rules["$Default"].Filter}");

        var small = new CreateRuleOptions("small", new SqlRuleFilter("n < 10"));
        small.Action = new SqlRuleAction("SET size = 'small'");
        await manager.CreateRuleAsync(small);
        await manager.CreateRuleAsync("red",
            new CorrelationRuleFilter { ApplicationProperties = { ["color"] = "red" } });
        await manager.DeleteRuleAsync("$Default");
        rules = await Listed(manager);
        Check.Equal(["red", "small"], rules.Keys);
        Check.Equal("n < 10", ((SqlRuleFilter)rules["small"].Filter).SqlExpression);
        Check.Equal("SET size = 'small'", ((SqlRuleAction)rules["small"].Action).SqlExpression);
        Check.Equal<object>("red", ((CorrelationRuleFilter)rules["red"].Filter).ApplicationProperties["color"]);

        await SendTogether("s168", Having(1, new() { ["n"] = 1 }), Having(2, new() { ["n"] = 20 }),
            Having(3, new() { ["n"] = 20, ["color"] = "red" }));
        var messages = await Held("s168", "a");
        Check.Equal(["1", "3"], Bodies(messages));
        Check.Equal<object>("small", messages[0].ApplicationProperties["size"]);
        Check.True(!messages[1].ApplicationProperties.ContainsKey("size"), "changed without an action");
    }

    [Scenario("S169", "what is there, what is not, and what is no rule is refused")]
    public async Task WhatIsNoRuleIsRefused()
    {
        await using var manager = Client.CreateRuleManager("s169", "a");
        await manager.CreateRuleAsync("twice", new SqlRuleFilter("1=1"));
        await Fails(ServiceBusFailureReason.MessagingEntityAlreadyExists,
            () => manager.CreateRuleAsync("twice", new SqlRuleFilter("1=0")));
        await Fails(ServiceBusFailureReason.MessagingEntityNotFound, () => manager.DeleteRuleAsync("no-such"));
        await Refuses("", () => manager.CreateRuleAsync("bad", new SqlRuleFilter("SELECT * FROM")));
        await Refuses("", () => manager.CreateRuleAsync(
            new CreateRuleOptions("bad2", new SqlRuleFilter("1=1")) { Action = new SqlRuleAction("JUMP") }));
        Check.Equal(["$Default", "twice"], (await Listed(manager)).Keys);
        // More than a page.
        for (var n = 0; n < 120; n += 1)
        {
            await manager.CreateRuleAsync($"rule-{n}", new SqlRuleFilter($"n = {n}"));
        }
        Check.Equal(122, (await Listed(manager)).Count);
    }
}

using System.Transactions;

namespace Interop;

/// <summary>Transactions over several entities, by TransactionScope.</summary>
class CrossEntity : Scenarios
{
    static ServiceBusClientOptions Crossing() => new()
    {
        EnableCrossEntityTransactions = true, RetryOptions = { TryTimeout = Deadline, Delay = Seconds(0.2) },
    };

    static TransactionScope Scope(TransactionScopeOption option = TransactionScopeOption.Required) =>
        new(option, TimeSpan.FromMinutes(1), TransactionScopeAsyncFlowOption.Enabled);

    static async Task<string> Topic(string name)
    {
        await Administration.CreateTopicAsync(name);
        await Administration.CreateSubscriptionAsync(name, "all");
        return name;
    }

    async Task<List<string>> There(string queue, string? subscription = null)
    {
        await using var looking = subscription is null ? Client.CreateReceiver(queue)
            : Client.CreateReceiver(queue, subscription);
        return Bodies(await PeekAll(looking));
    }

    [Scenario("S430", "a completion, sends to three entities and a schedule are committed together or not at all")]
    public async Task Together()
    {
        var (queue, one, two) = (await CreateQueue("s430"), await CreateQueue("s430b"), await CreateQueue("s430c"));
        var topic = await Topic("s430t");
        var client = Connect(options: Crossing());
        var receiver = client.CreateReceiver(queue);
        var senders = new[] { one, two, topic }.Select(each => client.CreateSender(each)).ToList();

        var scheduler = client.CreateSender(queue);

        async Task Work(string text, TransactionScope scope, bool commit)
        {
            using (scope)
            {
                var message = await ReceiveOne(receiver);
                await receiver.CompleteMessageAsync(message);
                // The transaction flows with the awaits, and to what is started at once.
                await Task.WhenAll(senders.Select(each => each.SendMessageAsync(Message(text))));
                // At the entity through which all goes: requests to other ones are in no session of the transaction's.
                await scheduler.ScheduleMessageAsync(Message($"{text} later"), In(TimeSpan.FromHours(1)));
                Check.Equal([], await There(two));
                if (commit)
                {
                    scope.Complete();
                }
            }
        }

        await Send(queue, Message("first"), Message("second"));
        await Work("no", Scope(), false);
        Check.Equal([], [.. await There(one), .. await There(two), .. await There(topic, "all")]);
        Check.Equal(["first", "second"], await There(queue));
        await Work("yes", Scope(), true);
        await Check.Eventually(async () => (await There(topic, "all")).Count == 1, "the topic's message");
        Check.Equal(["yes"], await There(one));
        Check.Equal(["yes"], await There(two));
        Check.Equal(["yes"], await There(topic, "all"));
        // What was rolled back is locked still, and can be completed.
        Check.Equal(["first", "yes later"], await There(queue));
    }

    [Scenario("S530", "scopes in scopes: the same transaction, another one, and none")]
    public async Task Nested()
    {
        var (queue, other) = (await CreateQueue("s530"), await CreateQueue("s530b"));
        var client = Connect(options: Crossing());
        var (sender, second) = (client.CreateSender(queue), client.CreateSender(other));

        async Task In(TransactionScopeOption option, ServiceBusSender by, string text, bool complete = true)
        {
            using var scope = Scope(option);
            await by.SendMessageAsync(Message(text));
            if (complete)
            {
                scope.Complete();
            }
        }

        using (var outer = Scope())
        {
            await In(TransactionScopeOption.Required, sender, "same");
            await In(TransactionScopeOption.Required, second, "same, another entity");
            await In(TransactionScopeOption.Suppress, sender, "outside");
            await In(TransactionScopeOption.RequiresNew, sender, "of its own");
            await In(TransactionScopeOption.RequiresNew, sender, "of its own, rolled back", false);
            Check.Equal(["of its own", "outside"], (await There(queue)).Order().ToList());
            outer.Complete();
        }
        await Check.Eventually(async () => (await There(queue)).Count == 3 && (await There(other)).Count == 1,
            "the outer one's");
        Check.Equal("same", (await There(queue))[^1]);

        // An inner scope that does not complete rolls all of it back.
        await Check.Throws<TransactionAbortedException>(async () =>
        {
            using var outer = Scope();
            await sender.SendMessageAsync(Message("never"));
            await In(TransactionScopeOption.Required, sender, "never", false);
            outer.Complete();
        });
        Check.Equal(3, (await There(queue)).Count);
    }

    [Scenario("S531", "without the option a transaction has one entity, and with it one receiver's")]
    public async Task Refused()
    {
        var (queue, other) = (await CreateQueue("s531"), await CreateQueue("s531b"));
        await Send(queue, Message(1));
        await Send(other, Message(1));
        var plain = Connect();
        var (sender, second) = (plain.CreateSender(queue), plain.CreateSender(other));
        using (Scope())
        {
            await sender.SendMessageAsync(Message("no"));
            var failure = await Check.Throws<InvalidOperationException>(() => second.SendMessageAsync(Message("no")));
            Check.True(failure.Message.Contains("cannot span multiple entities"), failure.Message);
        }
        Check.Equal(["1"], await There(queue));
        Check.Equal(["1"], await There(other));

        // The entity of the first link is the one through which messages go; a receiver of another one is refused.
        var crossing = Connect(options: Crossing());
        var first = crossing.CreateReceiver(queue);
        await first.CompleteMessageAsync(await ReceiveOne(first));
        await Check.Throws<InvalidOperationException>(
            () => crossing.CreateReceiver(other).ReceiveMessageAsync(Seconds(5)));
        await crossing.CreateSender(other).SendMessageAsync(Message(2));
        Check.Equal(["1", "2"], await There(other));
    }

    [Scenario("S532", "a connection that is cut in a transaction rolls it back, and the same objects work on")]
    public async Task Cut()
    {
        var (queue, other) = (await CreateQueue("s532", options => options.LockDuration = Seconds(5)),
            await CreateQueue("s532b"));
        var proxy = Own(new FaultProxy());
        var client = Connect(proxy.ConnectionString, Crossing());
        var (receiver, sender) = (client.CreateReceiver(queue), client.CreateSender(other));
        await Send(queue, Message("in"));
        await Check.Throws<Exception>(async () =>
        {
            using var scope = Scope();
            await receiver.CompleteMessageAsync(await ReceiveOne(receiver));
            await sender.SendMessageAsync(Message("lost"));
            Check.True(proxy.Cut() > 0, "no connection");
            scope.Complete();
        });
        Check.Equal([], await There(other));
        Check.Equal(["in"], await There(queue));

        using (var scope = Scope())
        {
            var message = await ReceiveOne(receiver);
            Check.Equal(1, Count(message));
            await receiver.CompleteMessageAsync(message);
            await sender.SendMessageAsync(Message("kept"));
            scope.Complete();
        }
        await Check.Eventually(async () => (await There(other)).Count == 1, "the message of the second transaction");
        Check.Equal([], await There(queue));
    }

    [Scenario("S529", "a session's state that is set in a transaction is set by its commit, and not by a rollback")]
    public async Task SessionState()
    {
        var queue = await CreateQueue("s529", options => options.RequiresSession = true);
        await Send(queue, InSession("one", 1));
        await using var session = await Client.AcceptSessionAsync(queue, "one");
        var message = await ReceiveOne(session);
        await session.SetSessionStateAsync(new BinaryData("before"));
        foreach (var commits in new[] { false, true })
        {
            using (var scope = Scope())
            {
                await session.CompleteMessageAsync(message);
                await session.SetSessionStateAsync(new BinaryData("of the transaction"));
                if (commits)
                {
                    scope.Complete();
                }
            }
            // The answer to a commit comes after its effects; a rollback has none.
            Check.Equal(commits ? "of the transaction" : "before", (await session.GetSessionStateAsync()).ToString());
        }
        Check.Equal(0, (await session.PeekMessagesAsync(1)).Count);
    }
}

using System.Collections.Concurrent;

namespace Interop;

/// <summary>Connections that a proxy resets or stops under every kind of work, and what goes on afterwards.</summary>
class Cuts : Scenarios
{
    [Scenario("S542", "senders whose connection is reset again and again lose nothing")]
    public async Task Sending()
    {
        var queue = await CreateQueue("s542");
        var proxy = Own(new FaultProxy());
        var client = Connect(proxy.ConnectionString);
        var senders = Enumerable.Range(0, 4).Select(_ => client.CreateSender(queue)).ToList();
        await Task.WhenAll(senders.Select(async (sender, who) =>
        {
            for (var n = 0; n < 50; n++)
            {
                // The first one resets the connection of all, after a send of its own has succeeded over it.
                Check.True(who > 0 || n is not (10 or 20 or 30 or 40) || proxy.Cut() > 0, "no connection");
                await sender.SendMessageAsync(new ServiceBusMessage($"{who}/{n}"));
            }
        }));
        Check.True(proxy.Connections >= 5, $"{proxy.Connections} connections");
        // A message whose answer was lost is sent twice.
        var found = Bodies(await PeekAll(Client.CreateReceiver(queue)));
        Check.Equal(200, found.Distinct().Count());
        Check.True(found.Count < 250, $"{found.Count} messages");
    }

    [Scenario("S543", "a receiver goes on after each reset, and settles what it received before")]
    public async Task Receiving()
    {
        var queue = await CreateQueue("s543");
        var proxy = Own(new FaultProxy());
        var client = Connect(proxy.ConnectionString);
        var receiver = client.CreateReceiver(queue, Prefetching(5));
        await SendNumbered(queue, 5);
        var first = await ReceiveOne(receiver);
        proxy.Cut();
        // By its lock token, over a new connection: the receiver itself takes the lock for lost, and asks nobody.
        await client.CreateReceiver(queue).CompleteMessageAsync(first);
        await Send(queue, Message("sixth"));
        Check.Equal("sixth", (await ReceiveOne(receiver)).Body.ToString());
        // A receive that waits is resumed.
        var waiting = receiver.ReceiveMessageAsync(Deadline);
        await Check.Eventually(() => Task.FromResult(proxy.Cut() > 0), "a connection to reset");
        await Send(queue, Message("seventh"));
        Check.Equal("seventh", ((await waiting) ?? await ReceiveOne(receiver)).Body.ToString());
        var left = Bodies(await PeekAll(Client.CreateReceiver(queue)));
        Check.True(!left.Contains("1"), "the completion was lost");
    }

    [Scenario("S543", "a completion whose answer is lost fails, and holds")]
    public async Task LosingAnAnswer()
    {
        var queue = await CreateQueue("s543b");
        var proxy = Own(new FaultProxy());
        var receiver = Connect(proxy.ConnectionString).CreateReceiver(queue);
        await SendNumbered(queue, 1);
        var message = await ReceiveOne(receiver);
        proxy.HoldAnswers();
        var completing = receiver.CompleteMessageAsync(message);
        var looking = Client.CreateReceiver(queue);
        await Check.Eventually(async () => (await PeekAll(looking)).Count == 0, "it is completed");
        Check.True(!completing.IsCompleted, "there was an answer");
        Check.True(proxy.Cut() > 0, "no connection");
        // The SDK takes the lock for lost with the link, and asks nobody.
        await Fails(ServiceBusFailureReason.MessageLockLost, () => completing);
    }

    [Scenario("S544", "a processor goes on after each reset, and every message is completed")]
    public async Task Processing()
    {
        var queue = await CreateQueue("s544", options => options.LockDuration = Seconds(5));
        var proxy = Own(new FaultProxy());
        var client = Connect(proxy.ConnectionString);
        await SendNumbered(queue, 120);
        var handled = new ConcurrentDictionary<string, int>();
        await using var processor = client.CreateProcessor(
            queue, new ServiceBusProcessorOptions { MaxConcurrentCalls = 4, PrefetchCount = 4 });
        processor.ProcessMessageAsync += args =>
        {
            handled.AddOrUpdate(args.Message.Body.ToString(), 1, (_, before) => before + 1);
            return Task.CompletedTask;
        };
        processor.ProcessErrorAsync += _ => Task.CompletedTask;
        await processor.StartProcessingAsync();
        foreach (var count in new[] { 20, 50, 80 })
        {
            await Check.Eventually(() => Task.FromResult(handled.Count >= count), $"{count} messages are handled");
            proxy.Cut();
        }
        await Check.Eventually(async () => (await PeekAll(Client.CreateReceiver(queue))).Count == 0,
            "all are completed", Seconds(60));
        Check.Equal(Texts(1, 120).Order().ToList(), handled.Keys.Order().ToList());
        Check.True(handled.Values.Sum() < 150, $"{handled.Values.Sum()} handled");
        await Send(queue, Message("after"));
        await Check.Eventually(() => Task.FromResult(handled.ContainsKey("after")), "a message after it");
    }

    [Scenario("S545", "a session whose connection is reset is free at once, with its state and its messages")]
    public async Task Sessions()
    {
        var queue = await CreateQueue("s545", options => options.RequiresSession = true);
        var proxy = Own(new FaultProxy());
        var client = Connect(proxy.ConnectionString);
        await Send(queue, InSession("x", 1), InSession("x", 2), InSession("x", 3));
        var session = await client.AcceptSessionAsync(queue, "x");
        await session.SetSessionStateAsync(new BinaryData("state"));
        await session.CompleteMessageAsync(await ReceiveOne(session));
        Check.Equal("2", (await ReceiveOne(session)).Body.ToString());
        proxy.Cut();
        // A session is not taken again by itself. 7.21.0 calls the object disposed, other versions the lock lost.
        var failure = await Check.Throws<Exception>(() => session.ReceiveMessageAsync(Seconds(10)));
        var reason = (failure as ServiceBusException)?.Reason;
        Check.True(failure is ObjectDisposedException || reason == ServiceBusFailureReason.SessionLockLost,
            $"{failure.GetType().Name}: {failure.Message}");
        // A receiver is lost if its first attempt has begun on the connection that was reset, though its next attempt succeeds:
        // the end of either link counts (AmqpReceiver.OnReceiverLinkClosed). The SDK asks for a new receiver then.
        for (var attempt = 1; ; attempt++)
        {
            await using var again = await client.AcceptNextSessionAsync(queue);
            Check.Equal("x", again.SessionId);
            try
            {
                Check.Equal("state", (await again.GetSessionStateAsync()).ToString());
            }
            catch (ServiceBusException lost) when (attempt < 3 && lost.Reason == ServiceBusFailureReason.SessionLockLost)
            {
                continue;
            }
            Check.Equal(["2", "3"], Bodies(await Receive(again, 2)));
            return;
        }
    }

    [Scenario("S546", "requests, schedules and administration go on after a reset")]
    public async Task Requests()
    {
        var queue = await CreateQueue("s546");
        await Administration.CreateTopicAsync("s546t");
        await Administration.CreateSubscriptionAsync("s546t", "a");
        var proxy = Own(new FaultProxy());
        var client = Connect(proxy.ConnectionString);
        var (sender, receiver) = (client.CreateSender(queue), client.CreateReceiver(queue));
        var rules = client.CreateRuleManager("s546t", "a");
        var administration = new ServiceBusAdministrationClient(proxy.ConnectionString);
        var number = await sender.ScheduleMessageAsync(Message("later"), In(TimeSpan.FromHours(1)));
        await rules.CreateRuleAsync("first", new SqlRuleFilter("a = 1"));
        Check.True(await administration.QueueExistsAsync(queue), "no queue");
        proxy.Cut();
        Check.Equal("later", (await receiver.PeekMessageAsync()).Body.ToString());
        proxy.Cut();
        await sender.CancelScheduledMessageAsync(number);
        proxy.Cut();
        await rules.CreateRuleAsync("second", new TrueRuleFilter());
        proxy.Cut();
        Check.True(await administration.QueueExistsAsync(queue), "no queue");
        var names = new List<string>();
        await foreach (var rule in rules.GetRulesAsync())
        {
            names.Add(rule.Name);
        }
        Check.Equal(["$Default", "first", "second"], names.Order(StringComparer.Ordinal).ToList());
        Check.Equal(0, (await PeekAll(Client.CreateReceiver(queue))).Count);
    }

    [Scenario("S547", "a broker that cannot be reached for a while is reached again by the objects that are there")]
    public async Task Unreachable()
    {
        var queue = await CreateQueue("s547");
        var proxy = Own(new FaultProxy());
        var client = Connect(proxy.ConnectionString);
        var (sender, receiver) = (client.CreateSender(queue), client.CreateReceiver(queue));
        await sender.SendMessageAsync(Message(1));
        await receiver.CompleteMessageAsync(await ReceiveOne(receiver));
        proxy.Refuse();
        proxy.Cut();
        await Fails(ServiceBusFailureReason.ServiceCommunicationProblem,
            () => sender.SendMessageAsync(Message("refused")));
        await Fails(ServiceBusFailureReason.ServiceCommunicationProblem,
            () => receiver.ReceiveMessageAsync(Seconds(20)));
        proxy.Accept();
        await sender.SendMessageAsync(Message(2));
        Check.Equal("2", (await ReceiveOne(receiver)).Body.ToString());
    }

    [Scenario("S557", "a batch whose connection is reset in the middle is sent again, and is there once")]
    public async Task Batches()
    {
        var queue = await CreateQueue("s557");
        var proxy = Own(new FaultProxy());
        var client = Connect(proxy.ConnectionString);
        var sender = client.CreateSender(queue);
        await sender.SendMessageAsync(Message("before"));
        using var batch = await sender.CreateMessageBatchAsync();
        while (batch.TryAddMessage(OfSize(10_000)))
        {
            // Until it is full.
        }
        proxy.CutAfter(batch.SizeInBytes / 2);
        var connections = proxy.Connections;
        await sender.SendMessagesAsync(batch);
        Check.True(proxy.Connections > connections, "the connection was not reset");
        var found = await PeekAll(Client.CreateReceiver(queue));
        Check.Equal(1 + batch.Count, found.Count);
        Check.Equal(Range(1, 1 + batch.Count), Numbers(found));
        Check.True(found.Skip(1).All(each => each.Body.ToMemory().Span.SequenceEqual(Pattern(10_000))),
            "a body differs");
    }

    [Scenario("S558", "a session processor whose connection is reset leaves its sessions to another one")]
    public async Task SessionProcessing()
    {
        var queue = await CreateQueue("s558", options => options.RequiresSession = true);
        var proxy = Own(new FaultProxy());
        var handled = new ConcurrentDictionary<string, int>();

        async Task<ServiceBusSessionProcessor> Started(ServiceBusClient client)
        {
            var processor = Own(client.CreateSessionProcessor(
                queue, new ServiceBusSessionProcessorOptions { MaxConcurrentSessions = 4 }));
            processor.ProcessMessageAsync += args =>
            {
                handled.AddOrUpdate($"{args.SessionId}{args.Message.Body}", 1, (_, before) => before + 1);
                return Task.CompletedTask;
            };
            processor.ProcessErrorAsync += _ => Task.CompletedTask;
            await processor.StartProcessingAsync();
            return processor;
        }

        string[] sessions = ["a", "b", "c", "d"];
        var client = Connect(proxy.ConnectionString);
        var first = await Started(client);
        await Send(queue, [.. sessions.Select(id => InSession(id, 1))]);
        await Check.Eventually(() => Task.FromResult(handled.Count == 4), "a message of each session");
        Check.True(proxy.Cut() > 0, "no connection");
        await Send(queue, [.. sessions.Select(id => InSession(id, 2))]);
        // 7.21.0 keeps the dead sessions, and handles no more in their place: a new processor is what helps.
        await first.CloseAsync();
        await Started(client);
        await Check.Eventually(() => Task.FromResult(handled.Count == 8), "the next message of each session");
        await Check.Eventually(async () => (await PeekAll(Client.CreateReceiver(queue))).Count == 0,
            "all are completed");
        Check.True(handled.Values.Sum() <= 12, $"{handled.Values.Sum()} handled");
    }
}

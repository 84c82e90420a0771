using System.Collections.Concurrent;
using System.Diagnostics;
using System.Text.Json;
using System.Transactions;

namespace Interop;

/// <summary>
/// What the frameworks of .NET do with the SDK: MassTransit, NServiceBus, Rebus, Wolverine and others.
/// </summary>
class Idioms : MoreScenarios
{
    static TransactionScope Scope() => new(TransactionScopeAsyncFlowOption.Enabled);

    static ServiceBusClientOptions Spanning()
    {
        var options = Options();
        options.EnableCrossEntityTransactions = true;
        return options;
    }

    /// <summary>What happens to a connection while an idiom is at work; by itself nothing does.</summary>
    delegate Task Disturbance();

    static Task Nothing() => Task.CompletedTask;

    [Scenario("S601", "three processes make the same 400 entities at once", Long = true, Seconds = 180)]
    public async Task ThreeProcessesMakeTheSame400EntitiesAtOnce()
    {
        var children = await Task.WhenAll(Enumerable.Range(0, 3).Select(_ => Child.Start("make", "s601", "100")));
        Array.ForEach(children, each => Own(each));
        await Task.WhenAll(children.Select(each => each.Tell("go")));
        var told = await Task.WhenAll(children.Select(each => each.Line()));
        var counts = told.Select(each => each.Split(' '))
            .Select(words => (Made: int.Parse(words[1].TrimEnd(',')), There: int.Parse(words[3]))).ToList();
        Check.Equal(400, counts.Sum(each => each.Made));
        Check.Equal(3 * 400, counts.Sum(each => each.Made + each.There));

        async Task<List<string>> Entities()
        {
            var queues = (await All(Administration.GetQueuesRuntimePropertiesAsync()))
                .Select(each => $"{each.Name} {each.UpdatedAt:O}");
            var topics = (await All(Administration.GetTopicsRuntimePropertiesAsync()))
                .Select(each => $"{each.Name} {each.UpdatedAt:O} {each.SubscriptionCount}");
            // Other scenarios make and delete entities meanwhile.
            return Sorted(queues.Concat(topics).Where(each => each.StartsWith("s601-")).Distinct());
        }
        var before = await Entities();
        Check.Equal(300, before.Count);
        Check.Equal(100, before.Count(each => each.EndsWith(" 1")));
        // Another time changes nothing.
        await children[0].Tell("go");
        Check.Equal("made 0, there 400", await children[0].Line());
        Check.Equal(before, await Entities());
        Check.Equal([0, 0, 0], await Task.WhenAll(children.Select(each => each.End())));
        await Send("s601-42.topic", Message("through"));
        Check.Equal("through", (await ReceiveOne(Client.CreateReceiver("s601-42"))).Body.ToString());
    }

    [Scenario("S602", "600 senders of a client are used for the first time at once, and one sender for 600 schedules")]
    public async Task SixHundredSendersAreUsedForTheFirstTimeAtOnce()
    {
        foreach (var n in Enumerable.Range(0, 20))
        {
            await CreateQueue($"s602-{n}");
        }
        await Client.CreateSender("s602-0").SendMessageAsync(Message("first"));
        var begin = Stopwatch.GetTimestamp();
        var senders = Enumerable.Range(0, 600).Select(n => Client.CreateSender($"s602-{n % 20}")).ToList();
        await Task.WhenAll(senders.Select(each => each.SendMessageAsync(Message("sent"))));
        var sent = Stopwatch.GetElapsedTime(begin);
        var numbers = await Task.WhenAll(Enumerable.Range(0, 600)
            .Select(n => senders[1].ScheduleMessageAsync(Message(n), In(TimeSpan.FromHours(1)))));
        var scheduled = Stopwatch.GetElapsedTime(begin) - sent;
        Check.Equal(600, numbers.Distinct().Count());
        foreach (var n in Enumerable.Range(0, 20))
        {
            var queue = (await Administration.GetQueueRuntimePropertiesAsync($"s602-{n}")).Value;
            Check.Equal(n == 0 ? 31 : 30, queue.ActiveMessageCount);
            Check.Equal(n == 1 ? 600 : 0, queue.ScheduledMessageCount);
        }
        // Nothing waited for an answer that never came: the SDK asks again after a minute.
        Check.True(sent < Seconds(20) && scheduled < Seconds(20), $"sent within {sent}, scheduled within {scheduled}");
    }

    /// <summary>At the secured broker, where no other scenario lists what begins with such signs.</summary>
    [Scenario("S603", "names are those that frameworks make")]
    public async Task NamesAreThoseThatFrameworksMake()
    {
        const string segment = "MassTransit/Fault--My.Namespace/Order--";
        var administrator = Secured.Administration;
        var client = Connect(Secured.ConnectionString);
        foreach (var name in new[]
        {
            "s603-", "s603--", "s603__", "s603_skipped", "s603/a/b", $"s603/{segment}", "_s603", "-s603",
            "S603.Mixed-Case",
            $"s603{new string('x', 256)}",
        })
        {
            await administrator.CreateQueueAsync(name);
            await RoundTrip(client, name);
            var other = name == name.ToUpperInvariant() ? name.ToLowerInvariant() : name.ToUpperInvariant();
            Check.True(await administrator.QueueExistsAsync(other), $"{other} is not {name}");
            var failure = await FailureOf(() => administrator.CreateTopicAsync(other));
            Check.Equal(ServiceBusFailureReason.MessagingEntityAlreadyExists, (failure as ServiceBusException)?.Reason);
            await client.CreateSender(other).SendMessageAsync(Message("by another case"));
            Check.Equal("by another case", (await ReceiveOne(client.CreateReceiver(name))).Body.ToString());
        }
        var topic = $"s603t/{segment}";
        await administrator.CreateTopicAsync(topic);
        foreach (var subscription in new[] { "in-", "_in_", "in.2", new string('y', 50) })
        {
            await administrator.CreateSubscriptionAsync(new CreateSubscriptionOptions(topic, subscription),
                new CreateRuleOptions("rule--", new SqlRuleFilter($"[to] = '{subscription}'")));
            await client.CreateSender(topic).SendMessageAsync(With("to", subscription));
            Check.Equal(subscription, (await ReceiveOne(client.CreateReceiver(topic, subscription))).Body.ToString());
        }
        // Some the SDK refuses itself.
        foreach (var name in new[] { "s603?", "s603@a", "s603#", "s603*", "/s603", "s603/",
            $"s603{new string('x', 257)}", "s603 a", "s603:a" })
        {
            var failure = await FailureOf(() => administrator.CreateQueueAsync(name));
            Check.True(failure is ArgumentException, $"{name}: {failure?.ToString() ?? "made"}");
        }
    }

    [Scenario("S603", "a name that begins with a hyphen hides no other in a list", Alone = true)]
    public async Task ANameThatBeginsWithAHyphenHidesNoOtherInAList()
    {
        await CreateQueue("-s603");
        try
        {
            var names = (await All(Administration.GetQueuesAsync())).Select(each => each.Name).ToList();
            Check.True(names.Contains("-s603") && names.Contains("s01"),
                $"of {names.Count} queues -s603 and s01 are not both listed");
        }
        finally
        {
            await Administration.DeleteQueueAsync("-s603");
        }
    }

    [Scenario("S604",
        "messages are published by their types, through queues to a topic of the base type, until that is deleted")]
    public async Task MessagesArePublishedByTheirTypes()
    {
        await CreateQueue("s604-all");
        await Administration.CreateTopicAsync("s604-animal");
        await Administration.CreateSubscriptionAsync(
            new CreateSubscriptionOptions("s604-animal", "all") { ForwardTo = "s604-all" });
        string[] kinds = ["cat", "dog"];
        foreach (var kind in kinds)
        {
            await CreateQueue($"s604-{kind}-in", options => options.ForwardTo = "s604-animal");
            await Administration.CreateTopicAsync($"s604-{kind}");
            await Administration.CreateSubscriptionAsync(
                new CreateSubscriptionOptions($"s604-{kind}", "in") { ForwardTo = $"s604-{kind}-in" });
            await Client.CreateSender($"s604-{kind}")
                .SendMessagesAsync(Texts(1, 50).Select(n => Message($"{kind} {n}")));
        }
        var there = await Receive(Client.CreateReceiver("s604-all", Destructive), 100);
        Check.Equal(Sorted(kinds.SelectMany(kind => Texts(1, 50).Select(n => $"{kind} {n}"))), Sorted(Bodies(there)));

        // The target is deleted under load: each message is where it was forwarded to, or a dead letter where it could
        // not be.
        var sent = 0;
        var isDeleted = false;
        var sending = Task.Run(async () =>
        {
            var sender = Client.CreateSender("s604-cat");
            for (var after = 0; after < 20; after += isDeleted ? 1 : 0)
            {
                await sender.SendMessageAsync(Message($"{sent}"));
                sent++;
            }
        });
        await Check.Eventually(() => Task.FromResult(sent >= 20), "messages are sent");
        await Administration.DeleteTopicAsync("s604-animal");
        isDeleted = true;
        await sending;
        var arrived = await PeekAll(Client.CreateReceiver("s604-all"));
        var letters = await PeekAll(Client.CreateReceiver("s604-cat-in", DeadLetters));
        Check.True(arrived.Count >= 20 && letters.Count >= 10,
            $"{arrived.Count} arrived, {letters.Count} are dead letters");
        Check.Equal(Enumerable.Range(0, sent).ToList(),
            Bodies(arrived.Concat(letters)).Select(int.Parse).Order().ToList());
        Check.True(letters.All(each => each.DeadLetterReason is { Length: > 0 }), "a dead letter without a reason");
    }

    [Scenario("S605", "a temporary queue lives as long as it is used, and then deletes itself", ByHand = true,
        Seconds = 800)]
    public async Task ATemporaryQueueLivesAsLongAsItIsUsed()
    {
        foreach (var name in new[] { "s605", "s605b" })
        {
            await CreateQueue(name, options => options.AutoDeleteOnIdle = TimeSpan.FromMinutes(5));
        }
        async Task<bool> IsThere(string name) => await Administration.QueueExistsAsync(name);
        await Send("s605", Message("lost with its queue"));
        // A processor is at work on the second one, and finds nothing: that is use enough.
        var processor = Own(Connect().CreateProcessor("s605b"));
        var work = new Work();
        processor.ProcessMessageAsync += work.Take;
        processor.ProcessErrorAsync += work.Failed;
        await processor.StartProcessingAsync();
        await Check.Eventually(async () => !await IsThere("s605"), "s605 is gone", TimeSpan.FromMinutes(6));
        await Fails(ServiceBusFailureReason.MessagingEntityNotFound, () => Send("s605", Message("too late")));
        Check.True(await IsThere("s605b"), "s605b is gone, too");
        await Send("s605b", Message("in time"));
        await work.Until(1);
        await processor.StopProcessingAsync();
        await processor.CloseAsync();
        await Check.Eventually(async () => !await IsThere("s605b"), "s605b is gone", TimeSpan.FromMinutes(6));
        Check.Equal([], work.Errors);
    }

    [Scenario("S606", "a processor has 100 handlers and prefetches 500, and is stopped while they run")]
    public Task AProcessorHas100HandlersAndPrefetches500() => Prefetches("s606", Connect(), Nothing);

    async Task Prefetches(string queue, ServiceBusClient client, Disturbance disturb)
    {
        const int all = 1500;
        await CreateQueue(queue, options => options.LockDuration = Seconds(5));
        await Client.CreateSender(queue).SendMessagesAsync(Numbered(all));
        var handled = new ConcurrentQueue<string>();
        var random = new Random(506);
        var processor = Own(client.CreateProcessor(queue,
            new ServiceBusProcessorOptions { MaxConcurrentCalls = 100, PrefetchCount = 500 }));
        processor.ProcessMessageAsync += async args =>
        {
            int wait;
            lock (random)
            {
                wait = random.Next(60);
            }
            // Work of different lengths: the messages are settled out of their order.
            await Task.Delay(wait, CancellationToken.None);
            handled.Enqueue(args.Message.Body.ToString());
        };
        var errors = new Work();
        processor.ProcessErrorAsync += errors.Failed;
        await processor.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(handled.Count >= 300),
            () => $"300 are handled; {errors.Errors.FirstOrDefault()}");
        await disturb();
        await Check.Eventually(() => Task.FromResult(handled.Count >= 700),
            () => $"700 are handled; {errors.Errors.FirstOrDefault()}");
        await processor.StopProcessingAsync();
        var before = handled.Distinct().ToList();
        await processor.CloseAsync();
        // What was not completed comes again, at the latest when its lock ends.
        var begin = Stopwatch.GetTimestamp();
        var looking = Client.CreateReceiver(queue, Destructive);
        var rest = new List<ServiceBusReceivedMessage>();
        while (rest.Count < all && await looking.ReceiveMessagesAsync(all, Seconds(6)) is { Count: > 0 } some)
        {
            rest.AddRange(some);
        }
        Check.True(Stopwatch.GetElapsedTime(begin) < Seconds(25), $"after {Stopwatch.GetElapsedTime(begin)}");
        Check.Equal(0, (await PeekAll(looking)).Count);
        Check.Equal(Sorted(Texts(1, all)), Sorted(before.Union(Bodies(rest))));
        Check.Equal(rest.Count, Bodies(rest).Distinct().Count());
        if (disturb == Nothing)
        {
            Check.Equal(all, handled.Count + rest.Count);
            Check.True(rest.All(each => Count(each) <= 1), "a message was delivered more than once in vain");
        }
    }

    [Scenario("S607", "a transaction of a completion, 100 sends and a schedule is committed; 101 sends are refused")]
    public async Task ATransactionOfACompletion100SendsAndASchedule()
    {
        string[] targets = ["s607-a", "s607-b", "s607-c"];
        foreach (var name in targets.Append("s607"))
        {
            await CreateQueue(name);
        }
        await SendNumbered("s607", 2);
        var client = Connect(options: Spanning());
        var receiver = client.CreateReceiver("s607");
        var messages = await Receive(receiver, 2);
        var senders = targets.Select(each => client.CreateSender(each)).ToList();

        async Task Handle(ServiceBusReceivedMessage message, int count, bool isScheduling)
        {
            for (var n = 0; n < count; n++)
            {
                await senders[n % 3].SendMessageAsync(Message(n));
            }
            if (isScheduling)
            {
                // As NServiceBus does it. ScheduleMessageAsync is a request of the entity itself, which is refused.
                await senders[0].SendMessageAsync(
                    new ServiceBusMessage("later") { ScheduledEnqueueTime = In(TimeSpan.FromHours(1)) });
            }
            await receiver.CompleteMessageAsync(message);
        }
        async Task<List<string>> There() => [.. await Task.WhenAll(targets.Select(async each =>
        {
            var queue = (await Administration.GetQueueRuntimePropertiesAsync(each)).Value;
            return $"{queue.ActiveMessageCount} {queue.ScheduledMessageCount}";
        }))];

        // One message too many: the scope is left with an exception, and so rolled back.
        var failure = await FailureOf(async () =>
        {
            using var scope = Scope();
            await Handle(messages[0], 101, false);
            scope.Complete();
        });
        Check.True(failure?.Message.Contains("more than 100 messages in a single transaction") == true, $"{failure}");
        Check.Equal(["0 0", "0 0", "0 0"], await There());
        // Disposed without being completed.
        using (Scope())
        {
            await Handle(messages[0], 99, true);
        }
        Check.Equal(["0 0", "0 0", "0 0"], await There());
        Check.Equal(2, (await PeekAll(receiver)).Count);
        using (var scope = Scope())
        {
            await Handle(messages[0], 99, true);
            scope.Complete();
        }
        Check.Equal(["33 1", "33 0", "33 0"], await There());
        using (var scope = Scope())
        {
            await Handle(messages[1], 100, false);
            scope.Complete();
        }
        Check.Equal(["67 1", "66 0", "66 0"], await There());
        Check.Equal(0, (await PeekAll(receiver)).Count);
    }

    [Scenario("S607", "a transaction of 50 completions, 84 sends and a session's state")]
    public async Task ATransactionOf50Completions84SendsAndASessionsState()
    {
        await CreateQueue("s607-orchestrator", options => options.RequiresSession = true);
        await CreateQueue("s607-worker");
        await Client.CreateSender("s607-orchestrator")
            .SendMessagesAsync(Texts(1, 50).Select(body => InSession("one", body)));
        var client = Connect(options: Spanning());
        var session = await client.AcceptNextSessionAsync("s607-orchestrator");
        var worker = client.CreateSender("s607-worker");
        var messages = await Receive(session, 50);
        foreach (var isCommitted in new[] { false, true })
        {
            using (var scope = Scope())
            {
                await Task.WhenAll(messages.Select(each => session.CompleteMessageAsync(each)));
                foreach (var message in Numbered(84))
                {
                    await worker.SendMessageAsync(message);
                }
                await session.SetSessionStateAsync(new BinaryData($"{isCommitted}"));
                if (isCommitted)
                {
                    scope.Complete();
                }
            }
            Check.Equal(isCommitted ? 84 : 0, (await PeekAll(Client.CreateReceiver("s607-worker"))).Count);
            Check.Equal(isCommitted ? 0 : 50, (await PeekAll(session)).Count);
        }
        // What it is after a rollback is S529's.
        Check.Equal("True", (await session.GetSessionStateAsync()).ToString());
    }

    [Scenario("S608", "what fails is retried at once, later, and moved to an error queue")]
    public Task WhatFailsIsRetriedAtOnceLaterAndMovedToAnErrorQueue() =>
        Retries("s608", Connect(options: Spanning()), Nothing);

    /// <summary>
    /// Of ten messages one is handled at its third immediate retry (abandoned, with a counter in a property), one at
    /// its second delayed retry (scheduled anew in the transaction that completes it), one goes to the error queue in a
    /// transaction, one is abandoned until it is a dead letter. The disturbance is in the middle of a transaction.
    /// </summary>
    async Task Retries(string queue, ServiceBusClient client, Disturbance disturb)
    {
        await CreateQueue(queue, options =>
        {
            // What is locked when a connection is cut comes again when its lock is over, and has failed once more.
            options.LockDuration = Seconds(5);
            options.MaxDeliveryCount = disturb == Nothing ? 5 : 10;
        });
        await CreateQueue($"{queue}_error");
        string[] bodies = ["immediate", "delayed", "poison", "hopeless", .. Texts(1, 6)];
        await Client.CreateSender(queue).SendMessagesAsync(bodies.Select(Message));
        var (handled, counts, errors) = (new ConcurrentQueue<string>(), new ConcurrentQueue<int>(), new Work());
        var (sender, errorQueue) = (client.CreateSender(queue), client.CreateSender($"{queue}_error"));
        var isDisturbed = 0;
        int Counter(ServiceBusReceivedMessage message, string name) =>
            message.ApplicationProperties.TryGetValue(name, out var value) ? (int)value : 0;
        var processor = Own(client.CreateProcessor(queue,
            new ServiceBusProcessorOptions { AutoCompleteMessages = false, MaxConcurrentCalls = 4 }));
        processor.ProcessErrorAsync += errors.Failed;
        processor.ProcessMessageAsync += async args =>
        {
            var message = args.Message;
            switch (message.Body.ToString())
            {
                case "immediate" when Counter(message, "retries") < 3:
                    var changed = new Dictionary<string, object> { ["retries"] = Counter(message, "retries") + 1 };
                    await args.AbandonMessageAsync(message, changed);
                    return;
                case "delayed" when Counter(message, "delays") < 2:
                    using (var scope = Scope())
                    {
                        var again = new ServiceBusMessage(message);
                        again.ApplicationProperties["delays"] = Counter(message, "delays") + 1;
                        await sender.ScheduleMessageAsync(again, Now + Seconds(0.5));
                        await args.CompleteMessageAsync(message);
                        scope.Complete();
                    }
                    return;
                case "poison":
                    using (var scope = Scope())
                    {
                        var error = new ServiceBusMessage(message);
                        error.ApplicationProperties["ExceptionMessage"] = "poison";
                        await errorQueue.SendMessageAsync(error);
                        if (Interlocked.Exchange(ref isDisturbed, 1) == 0)
                        {
                            await disturb();
                        }
                        await args.CompleteMessageAsync(message);
                        scope.Complete();
                    }
                    return;
                case "hopeless":
                    counts.Enqueue(Count(message));
                    await args.AbandonMessageAsync(message);
                    return;
                default:
                    // Before it is completed: if the answer to that is lost, the SDK says that the lock is, and the
                    // message does not come again.
                    handled.Enqueue(message.Body.ToString());
                    await args.CompleteMessageAsync(message);
                    return;
            }
        };
        await processor.StartProcessingAsync();
        var dead = Client.CreateReceiver(queue, DeadLetters);
        var looking = Client.CreateReceiver(queue);
        await Check.Eventually(async () =>
            handled.Distinct().Count() == 8 && (await PeekAll(looking)).Count == 0 && (await PeekAll(dead)).Count == 1,
            () => $"all is done; handled {string.Join(", ", handled)}; {errors.Errors.FirstOrDefault()}");
        await processor.StopProcessingAsync();
        var letter = (await PeekAll(dead))[0];
        Check.Equal("hopeless MaxDeliveryCountExceeded", $"{letter.Body} {letter.DeadLetterReason}");
        var poison = (await PeekAll(Client.CreateReceiver($"{queue}_error"))).Single();
        Check.Equal("poison poison", $"{poison.Body} {poison.ApplicationProperties["ExceptionMessage"]}");
        Check.Equal(Sorted(Texts(1, 6).Append("immediate").Append("delayed")), Sorted(handled.Distinct()));
        if (disturb == Nothing)
        {
            Check.Equal([0, 1, 2, 3, 4], counts.ToList());
            Check.Equal(8, handled.Count);
            Check.Equal([], errors.Errors);
        }
    }

    [Scenario("S609", "a saga is in the state of its session, handled by two workers of which one is killed",
        Long = true, Seconds = 180)]
    public async Task ASagaIsInTheStateOfItsSession()
    {
        await CreateQueue("s609", options => options.RequiresSession = true);
        var sagas = Texts(1, 12);
        var sender = Client.CreateSender("s609");
        var workers = await Task.WhenAll(Child.Start("saga", "s609"), Child.Start("saga", "s609"));
        Array.ForEach(workers, each => Own(each));
        var handled = new int[2];
        var listening = workers.Index().Select(each => Task.Run(async () =>
        {
            while ((await each.Item.Line(3 * Deadline)).Length > 0)
            {
                Interlocked.Increment(ref handled[each.Index]);
            }
        })).ToList();
        // Until both are at work, and one round more, in the middle of which one is killed.
        var steps = new List<string>();
        var isEnough = false;
        while (!isEnough)
        {
            isEnough = handled.Min() >= 5;
            steps.Add($"{steps.Count + 1}");
            await sender.SendMessagesAsync(sagas.Select(saga => InSession(saga, steps[^1])));
            var wanted = sagas.Count * (steps.Count - 1) + 1;
            await Check.Eventually(() => Task.FromResult(handled.Sum() >= wanted), $"{wanted} steps are made");
        }
        await workers[0].Kill();
        steps.Add("last");
        await sender.SendMessagesAsync(sagas.Select(saga => InSession(saga, "last")));
        await BecomesEmpty(Client.CreateReceiver("s609"));
        Check.Equal(0, await workers[1].End());
        await Task.WhenAll(listening);
        foreach (var saga in sagas)
        {
            var session = await Client.AcceptSessionAsync("s609", saga);
            var state = (await session.GetSessionStateAsync()).ToString();
            Check.Equal(steps, JsonSerializer.Deserialize<List<string>>(state)!);
        }
    }

    [Scenario("S610", "an outbox is sent twice, and arrives once")]
    public Task AnOutboxIsSentTwiceAndArrivesOnce() => SendsTheOutbox("s610", Connect(), Nothing);

    async Task SendsTheOutbox(string queue, ServiceBusClient client, Disturbance disturb)
    {
        await CreateQueue(queue, options => options.RequiresDuplicateDetection = true);
        var sender = client.CreateSender(queue);
        async Task Dispatch()
        {
            for (var first = 0; first < 1000; first += 100)
            {
                using var batch = await sender.CreateMessageBatchAsync();
                foreach (var n in Enumerable.Range(first, 100))
                {
                    Check.True(batch.TryAddMessage(new ServiceBusMessage($"{n}") { MessageId = $"outbox-{n}" }),
                        "a full batch");
                }
                await sender.SendMessagesAsync(batch);
            }
        }
        // Two dispatchers at once, and one after them: each sends all there is.
        var dispatching = Task.WhenAll(Dispatch(), Dispatch());
        await disturb();
        await dispatching;
        await Dispatch();
        var there = await PeekAll(Client.CreateReceiver(queue));
        Check.Equal(Enumerable.Range(0, 1000).ToList(), Bodies(there).Select(int.Parse).Order().ToList());
        Check.Equal(Range(1, 1000), Numbers(there));
    }

    [Scenario("S611", "a queue is purged at the start, beside a sender")]
    public Task AQueueIsPurgedAtTheStartBesideASender() => Purges("s611", Connect(), Nothing);

    async Task Purges(string queue, ServiceBusClient client, Disturbance disturb)
    {
        await CreateQueue(queue);
        await Client.CreateSender(queue).SendMessagesAsync(Numbered(1000));
        var receiver = client.CreateReceiver(queue, Destructive);
        var sent = 0;
        var sending = Task.Run(async () =>
        {
            var sender = Client.CreateSender(queue);
            for (sent = 0; sent < 200; sent++)
            {
                await sender.SendMessageAsync(Message($"beside {sent}"));
            }
        });
        var purged = new List<ServiceBusReceivedMessage>();
        var isDisturbed = false;
        while (await receiver.ReceiveMessagesAsync(100, Seconds(1)) is { Count: > 0 } some)
        {
            purged.AddRange(some);
            if (!isDisturbed && purged.Count >= 300)
            {
                isDisturbed = true;
                await disturb();
            }
        }
        await sending;
        Check.True(purged.Count >= 300, $"only {purged.Count} are purged");
        // What comes after the end of a receive the SDK gives to the next one.
        var rest = new List<ServiceBusReceivedMessage>();
        while (await receiver.ReceiveMessagesAsync(100, Seconds(2)) is { Count: > 0 } some)
        {
            rest.AddRange(some);
        }
        var numbers = Numbers(purged.Concat(rest));
        Check.Equal(numbers.Count, numbers.Distinct().Count());
        Check.Equal(0, (await PeekAll(Client.CreateReceiver(queue))).Count);
        if (disturb == Nothing)
        {
            Check.Equal(Range(1, 1200), Sorted(numbers));
        }
    }

    [Scenario("S612", "the default rule is replaced by fifty others in one go")]
    public async Task TheDefaultRuleIsReplacedByFiftyOthersInOneGo()
    {
        await Administration.CreateTopicAsync("s612");
        await Administration.CreateSubscriptionAsync("s612", "in");
        await using var manager = Client.CreateRuleManager("s612", "in");
        var types = Enumerable.Range(0, 50).Select(n => $"type-{n:00}").ToList();
        CreateRuleOptions RuleOf(string type) => new(type, new SqlRuleFilter($"[type] LIKE '%{type};%'"));
        await Task.WhenAll(types[..25].Select(type => manager.CreateRuleAsync(RuleOf(type)))
            .Concat(types[25..].Select(type => (Task)Administration.CreateRuleAsync("s612", "in", RuleOf(type))))
            .Append(manager.DeleteRuleAsync("$Default")));
        // In the order of their names, by both ways.
        Check.Equal(types, (await All(Administration.GetRulesAsync("s612", "in"))).Select(each => each.Name).ToList());
        Check.Equal(types, (await All(manager.GetRulesAsync())).Select(each => each.Name).ToList());

        var sender = Client.CreateSender("s612");
        ServiceBusMessage Of(string type, string body) =>
            new(body) { ApplicationProperties = { ["type"] = $"{type};base;" } };
        await sender.SendMessagesAsync(types.Select(type => Of(type, type)).Append(Of("unknown", "unknown")));
        var receiver = Client.CreateReceiver("s612", "in", Destructive);
        Check.Equal(types, Bodies(await Receive(receiver, 50)));

        // Half of them are removed and put back while messages flow: what has a rule all the time comes, and nothing
        // comes twice.
        using var end = new CancellationTokenSource();
        var sent = 0;
        var sending = Task.Run(async () =>
        {
            while (!end.IsCancellationRequested)
            {
                await sender.SendMessagesAsync([Of(types[0], $"kept {sent}"), Of(types[^1], $"changed {sent}")]);
                Volatile.Write(ref sent, sent + 1);
            }
        });
        // The second send from now on begins after it.
        async Task SomeAreSent()
        {
            var before = Volatile.Read(ref sent);
            await Check.Eventually(() => Task.FromResult(before + 2 <= Volatile.Read(ref sent)), "messages are sent");
        }
        foreach (var _ in Enumerable.Range(0, 2))
        {
            await Task.WhenAll(types[25..].Select(type => manager.DeleteRuleAsync(type)));
            await Check.Eventually(async () => (await All(manager.GetRulesAsync())).Count == 25, "25 rules are left");
            await SomeAreSent();
            await Task.WhenAll(types[25..].Select(type => manager.CreateRuleAsync(RuleOf(type))));
            await SomeAreSent();
        }
        end.Cancel();
        await sending;
        var bodies = Bodies(await PeekAll(Client.CreateReceiver("s612", "in")));
        Check.Equal(bodies.Count, bodies.Distinct().Count());
        Check.Equal(Enumerable.Range(0, sent).Select(n => $"kept {n}").ToList(),
            bodies.Where(each => each.StartsWith("kept")).ToList());
        var changed = bodies.Count(each => each.StartsWith("changed"));
        Check.True(changed > 0 && changed < sent, $"{changed} of {sent} met their rule");
    }

    [Scenario("S613", "health is a peek on an empty queue, and administration at the AMQP port")]
    public async Task HealthIsAPeekOnAnEmptyQueueAndAdministrationAtTheAmqpPort()
    {
        await CreateQueue("s613");
        await Administration.CreateTopicAsync("s613t");
        await Administration.CreateSubscriptionAsync("s613t", "in");
        // The suite's connection string names the AMQP port; administration goes there by HTTP.
        Check.True(Broker.ConnectionString.Contains($":{Broker.AmqpPort}"), "another port");
        var begin = Stopwatch.GetTimestamp();
        for (var probe = 0; probe < 20; probe++)
        {
            // Each with clients of its own, as a health check has them; all at once.
            await Task.WhenAll(
                Task.Run(async () =>
                {
                    await using var client = new ServiceBusClient(Broker.ConnectionString, Options());
                    await using var receiver = client.CreateReceiver("s613");
                    Check.True(await receiver.PeekMessageAsync() == null, "a message");
                    await using var dead = client.CreateReceiver("s613t", "in", DeadLetters);
                    Check.True(await dead.PeekMessageAsync() == null, "a dead letter");
                    using var batch = await client.CreateSender("s613").CreateMessageBatchAsync();
                }),
                Task.Run(async () =>
                {
                    var administrator = new ServiceBusAdministrationClient(Broker.ConnectionString);
                    TopicRuntimeProperties topic = await administrator.GetTopicRuntimePropertiesAsync("s613t");
                    Check.Equal(1, topic.SubscriptionCount);
                    SubscriptionRuntimeProperties subscription =
                        await administrator.GetSubscriptionRuntimePropertiesAsync("s613t", "in");
                    Check.Equal(0, subscription.TotalMessageCount);
                    Check.True((await administrator.GetNamespacePropertiesAsync()).Value.Name.Length > 0, "no name");
                }));
        }
        Check.True(Stopwatch.GetElapsedTime(begin) < Seconds(15),
            $"20 probes within {Stopwatch.GetElapsedTime(begin)}");
        // What is not healthy.
        await Fails(ServiceBusFailureReason.MessagingEntityNotFound,
            () => Client.CreateReceiver("s613-gone").PeekMessageAsync());
        await Fails(ServiceBusFailureReason.MessagingEntityNotFound,
            () => Administration.GetTopicRuntimePropertiesAsync("s613-gone"));
    }

    [Scenario("S614", "a connection is killed under a processor with 100 handlers")]
    public Task AConnectionIsKilledUnderAProcessor() =>
        Killed(Options(), (client, disturb) => Prefetches("s614-prefetch", client, disturb));

    [Scenario("S614", "a connection is killed under retries and an error queue")]
    public Task AConnectionIsKilledUnderRetries() =>
        Killed(Spanning(), (client, disturb) => Retries("s614-retry", client, disturb));

    [Scenario("S614", "a connection is killed under an outbox")]
    public Task AConnectionIsKilledUnderAnOutbox() =>
        Killed(Options(), (client, disturb) => SendsTheOutbox("s614-outbox", client, disturb));

    [Scenario("S614", "a connection is killed under a purge")]
    public Task AConnectionIsKilledUnderAPurge() =>
        Killed(Options(), (client, disturb) => Purges("s614-purge", client, disturb));

    /// <summary>
    /// Resets the idiom's connection as soon as there is one, and checks that it goes on by itself, and soon.
    /// </summary>
    async Task Killed(ServiceBusClientOptions options, Func<ServiceBusClient, Disturbance, Task> idiom)
    {
        var proxy = Own(new FaultProxy());
        var kills = 0;
        await idiom(Connect(proxy.ConnectionString, options), async () =>
        {
            await Check.Eventually(() => Task.FromResult((kills = proxy.Cut()) > 0), "there is a connection");
        });
        Check.True(kills > 0, "no connection was killed");
    }
}

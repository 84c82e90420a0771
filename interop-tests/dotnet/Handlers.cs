namespace Interop;

/// <summary>What handlers of processors can do with what they are given.</summary>
class Handlers : MoreScenarios
{
    static readonly Dictionary<string, object> Attempt = new() { ["attempt"] = 1 };

    /// <summary>Runs a processor until as many messages were handled, and returns what failed.</summary>
    static Task<string> Run(ServiceBusProcessor processor, int count, Func<ProcessMessageEventArgs, Task> handle)
    {
        var work = new Work();
        processor.ProcessMessageAsync += async arguments =>
        {
            await handle(arguments);
            work.Add(arguments.Message);
        };
        processor.ProcessErrorAsync += work.Failed;
        return Run(work, processor.StartProcessingAsync, processor.StopProcessingAsync, count, () => true);
    }

    static Task<string> Run(ServiceBusSessionProcessor processor, int count,
        Func<ProcessSessionMessageEventArgs, Task> handle, Func<bool>? isDone = null, Func<string>? seen = null)
    {
        var work = new Work();
        processor.ProcessMessageAsync += async arguments =>
        {
            await handle(arguments);
            work.Add(arguments.Message);
        };
        processor.ProcessErrorAsync += work.Failed;
        return Run(work, processor.StartProcessingAsync, processor.StopProcessingAsync, count, isDone ?? (() => true),
            seen);
    }

    static async Task<string> Run(Work work, Func<CancellationToken, Task> start, Func<CancellationToken, Task> stop,
        int count, Func<bool> isDone, Func<string>? seen = null)
    {
        await start(CancellationToken.None);
        await Check.Eventually(
            () => Task.FromResult((work.Count >= count && isDone()) || work.Complaints.Count > 0),
            () => $"{count} messages; found {work.Count}{(seen is null ? "" : $", and {seen()}")}");
        await stop(CancellationToken.None);
        return string.Join("; ", work.Complaints);
    }

    [Scenario("S571", "a handler dead-letters with properties, and renews a lock")]
    public async Task AHandlerDeadLettersWithPropertiesAndRenews()
    {
        await CreateQueue("s571");
        await SendNumbered("s571", 2);
        var processor = Own(Client.CreateProcessor("s571",
            new ServiceBusProcessorOptions { AutoCompleteMessages = false }));
        var errors = await Run(processor, 2, async arguments =>
        {
            var message = arguments.Message;
            var until = message.LockedUntil;
            await Task.Delay(20);
            await arguments.RenewMessageLockAsync(message);
            Check.True(message.LockedUntil > until, $"{message.LockedUntil:O} is not after {until:O}");
            await (message.Body.ToString() == "1" ? arguments.DeadLetterMessageAsync(message, Attempt)
                : arguments.DeadLetterMessageAsync(message, Attempt, "why", "because"));
        });
        Check.Equal("", errors);
        var letters = Sorted(await Receive(Client.CreateReceiver("s571", DeadLetters), 2),
            each => each.Body.ToString());
        Check.Equal([1, 1], letters.Select(each => each.ApplicationProperties["attempt"]));
        Check.Equal(["", "why"], letters.Select(each => each.DeadLetterReason ?? ""));
        Check.Equal("because", letters[1].DeadLetterErrorDescription);
    }

    static List<ServiceBusReceivedMessage> Sorted(IEnumerable<ServiceBusReceivedMessage> messages,
        Func<ServiceBusReceivedMessage, string> by) =>
        [.. messages.OrderBy(by, StringComparer.Ordinal)];

    [Scenario("S572", "a handler of sessions settles in every way, and receives more")]
    public async Task AHandlerOfSessionsSettlesInEveryWay()
    {
        await CreateQueue("s572", options => options.RequiresSession = true);
        string[] bodies = ["abandon", "defer", "dead", "dead-properties", "dead-all", "more", "one", "two"];
        await using (var sender = Client.CreateSender("s572"))
        {
            await sender.SendMessagesAsync(bodies.Select(each => InSession("x", each)));
        }
        var processor = Own(Client.CreateSessionProcessor("s572", new ServiceBusSessionProcessorOptions
        {
            AutoCompleteMessages = false, MaxConcurrentSessions = 1,
        }));
        var seen = new List<string>();
        var errors = await Run(processor, 7, async arguments =>
        {
            var message = arguments.Message;
            seen.Add($"{message.Body} {Count(message)}");
            await (message.Body.ToString() switch
            {
                "abandon" when Count(message) == 0 => arguments.AbandonMessageAsync(message, Attempt),
                "abandon" => arguments.CompleteMessageAsync(message),
                "defer" => arguments.DeferMessageAsync(message, Attempt),
                "dead" => arguments.DeadLetterMessageAsync(message, "why", "because"),
                "dead-properties" => arguments.DeadLetterMessageAsync(message, Attempt),
                "dead-all" => arguments.DeadLetterMessageAsync(message, Attempt, "why", "because"),
                _ => ReceiveMore(arguments),
            });
        });
        Check.Equal("", errors);
        Check.Equal("abandon 0, abandon 1, defer 0, dead 0, dead-properties 0, dead-all 0, more 0",
            string.Join(", ", seen));
        var letters = Sorted(await Receive(Client.CreateReceiver("s572", DeadLetters), 3),
            each => each.Body.ToString());
        Check.Equal(["dead", "dead-all", "dead-properties"], Bodies(letters));
        Check.Equal(["why", "why", ""], letters.Select(each => each.DeadLetterReason ?? ""));
        Check.Equal([false, true, true], letters.Select(each => each.ApplicationProperties.ContainsKey("attempt")));
        Check.Equal(0, (await PeekAll(Client.CreateReceiver("s572"))).Count);
    }

    /// <summary>Takes and completes all that is left of the session.</summary>
    static async Task ReceiveMore(ProcessSessionMessageEventArgs arguments)
    {
        var actions = arguments.GetReceiveActions();
        Check.Equal(["defer", "more", "one", "two"], Bodies(await actions.PeekMessagesAsync(10, 1)));
        var deferred = await actions.ReceiveDeferredMessagesAsync([2]);
        Check.Equal<object>(1, deferred[0].ApplicationProperties["attempt"]);
        var more = new List<ServiceBusReceivedMessage>();
        while (more.Count < 2)
        {
            more.AddRange(await actions.ReceiveMessagesAsync(2 - more.Count, Seconds(10)));
        }
        Check.Equal(["one", "two"], Bodies(more));
        foreach (var message in more.Concat(deferred).Append(arguments.Message))
        {
            await arguments.CompleteMessageAsync(message);
        }
    }

    [Scenario("S573", "a handler of sessions learns that its lock is lost")]
    public async Task AHandlerOfSessionsLearnsThatItsLockIsLost()
    {
        await CreateQueue("s573", options => (options.RequiresSession, options.LockDuration) = (true, Seconds(5)));
        await Send("s573", InSession("x", 1));
        var lost = new TaskCompletionSource<SessionLockLostEventArgs>();
        await using var processor = Client.CreateSessionProcessor("s573", new ServiceBusSessionProcessorOptions
        {
            AutoCompleteMessages = false, MaxConcurrentSessions = 1, MaxAutoLockRenewalDuration = TimeSpan.Zero,
        });
        processor.ProcessMessageAsync += async arguments =>
        {
            arguments.SessionLockLostAsync += told =>
            {
                lost.TrySetResult(told);
                return Task.CompletedTask;
            };
            await lost.Task.WaitAsync(Seconds(20));
        };
        processor.ProcessErrorAsync += _ => Task.CompletedTask;
        await processor.StartProcessingAsync();
        var told = await lost.Task.WaitAsync(Seconds(20));
        Check.Equal("1", told.Message.Body.ToString());
        Check.True(told.SessionLockedUntil <= Now + Seconds(1), $"locked until {told.SessionLockedUntil:O}");
        await processor.StopProcessingAsync();
    }

    [Scenario("S574", "a processor of a subscription's sessions opens, closes and gives up sessions")]
    public async Task AProcessorOpensClosesAndGivesUpSessions()
    {
        await Administration.CreateTopicAsync("s574");
        await Administration.CreateSubscriptionAsync(
            new CreateSubscriptionOptions("s574", "s") { RequiresSession = true });
        await Send("s574", InSession("x", 1), InSession("x", 2));
        var processor = Client.CreateSessionProcessor("s574", "s", new ServiceBusSessionProcessorOptions
        {
            Identifier = "mine", PrefetchCount = 1, ReceiveMode = ServiceBusReceiveMode.PeekLock,
            MaxConcurrentSessions = 1, SessionIdleTimeout = Seconds(1),
        });
        Check.Equal(("mine", ServiceBusReceiveMode.PeekLock, 1), (processor.Identifier, processor.ReceiveMode,
            processor.PrefetchCount));
        processor.UpdateConcurrency(2, 2);
        processor.UpdatePrefetchCount(3);
        Check.Equal((2, 2, 3), (processor.MaxConcurrentSessions, processor.MaxConcurrentCallsPerSession,
            processor.PrefetchCount));
        var events = new System.Collections.Concurrent.ConcurrentQueue<string>();
        processor.SessionInitializingAsync += async arguments =>
        {
            var state = await arguments.GetSessionStateAsync();
            await arguments.SetSessionStateAsync(BinaryData.FromString($"{state}opened "));
            var until = arguments.SessionLockedUntil;
            await Task.Delay(20);
            await arguments.RenewSessionLockAsync();
            var isRenewed = arguments.SessionLockedUntil > until;
            events.Enqueue($"opens {arguments.SessionId}{(isRenewed ? "" : ", and its lock is not renewed")}");
        };
        processor.SessionClosingAsync += arguments =>
        {
            events.Enqueue($"closes {arguments.SessionId}");
            arguments.ReleaseSession();
            return Task.CompletedTask;
        };
        var errors = await Run(processor, 2, arguments =>
        {
            events.Enqueue($"message of {arguments.SessionId}");
            return Task.CompletedTask;
        }, () => events.Contains("closes x"), () => string.Join(", ", events));
        await processor.DisposeAsync();
        Check.Equal("", errors);
        Check.Equal("opens x, message of x, message of x, closes x", string.Join(", ", events.Take(4)));
        var session = await Client.AcceptSessionAsync("s574", "s", "x");
        Check.True((await session.GetSessionStateAsync()).ToString().StartsWith("opened "), "no state");
        Check.Equal(0, (await PeekAll(session)).Count);
    }
}

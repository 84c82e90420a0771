using System.Collections.Concurrent;

namespace Interop;

/// <summary>The SDK's session processor: which sessions, how many, and what its handlers may do.</summary>
class SessionProcessors : Scenarios
{
    static Task<string> Sessions(string name, Action<CreateQueueOptions>? change = null) => CreateQueue(name, options =>
    {
        options.RequiresSession = true;
        change?.Invoke(options);
    });

    readonly Work work = new();

    ServiceBusSessionProcessor Processor(
        string queue, Func<ProcessSessionMessageEventArgs, Task> handle, ServiceBusSessionProcessorOptions options,
        Action<ProcessErrorEventArgs>? note = null)
    {
        var processor = Own(Client.CreateSessionProcessor(queue, options));
        processor.ProcessMessageAsync += handle;
        processor.ProcessErrorAsync += error =>
        {
            note?.Invoke(error);
            return work.Failed(error);
        };
        return processor;
    }

    [Scenario("S426", "a processor of named sessions leaves the others, keeps state and tells of their begin and end")]
    public async Task NamedSessions()
    {
        var queue = await Sessions("s426");
        await Send(queue, [.. from n in Enumerable.Range(1, 3) from id in new[] { "a", "b", "c" } select InSession(
            id, n)]);
        var seen = new ConcurrentQueue<string>();
        var (begun, ended) = (new ConcurrentBag<string>(), new ConcurrentBag<string>());
        var processor = Processor(queue, async args =>
        {
            var state = await args.GetSessionStateAsync();
            await args.SetSessionStateAsync(new BinaryData($"{state}{args.Message.Body}"));
            await args.RenewSessionLockAsync();
            Check.True(args.SessionLockedUntil > Now, "the session's lock is over");
            seen.Enqueue($"{args.SessionId}{args.Message.Body}");
        }, new ServiceBusSessionProcessorOptions { SessionIds = { "a", "b" }, MaxConcurrentSessions = 2 });
        processor.SessionInitializingAsync += async args =>
        {
            begun.Add(args.SessionId);
            await args.SetSessionStateAsync(new BinaryData("begun "));
        };
        processor.SessionClosingAsync += args =>
        {
            ended.Add(args.SessionId);
            return Task.CompletedTask;
        };
        await processor.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(seen.Count == 6), "both sessions are handled");
        await processor.CloseAsync();
        foreach (var id in new[] { "a", "b" })
        {
            Check.Equal([$"{id}1", $"{id}2", $"{id}3"], seen.Where(each => each.StartsWith(id)).ToList());
            await using var session = await Client.AcceptSessionAsync(queue, id);
            Check.Equal("begun 123", (await session.GetSessionStateAsync()).ToString());
            Check.Equal(0, (await session.PeekMessagesAsync(10)).Count);
        }
        Check.Equal(["a", "b"], begun.Order().ToList());
        Check.Equal(["a", "b"], ended.Order().ToList());
        await using var third = await Client.AcceptSessionAsync(queue, "c");
        Check.Equal(["1", "2", "3"], Bodies(await Receive(third, 3)));
        Check.Equal([], work.Complaints);
    }

    [Scenario("S427", "an idle session makes room for the next one, and so does one that is released")]
    public async Task IdleSessions()
    {
        var queue = await Sessions("s427");
        await Send(queue, InSession("a", 1), InSession("b", 1), InSession("c", 1));
        var seen = new ConcurrentQueue<string>();
        var processor = Processor(queue, args =>
        {
            seen.Enqueue(args.SessionId);
            return Task.CompletedTask;
        }, new ServiceBusSessionProcessorOptions { MaxConcurrentSessions = 1, SessionIdleTimeout = Seconds(0.5) });
        await processor.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(seen.Count == 3), "the sessions, one after the other");
        // It comes back to a session that it has had.
        await Send(queue, InSession("a", 2));
        await Check.Eventually(() => Task.FromResult(seen.Count == 4), "the first session again");
        Check.Equal(["a", "a", "b", "c"], seen.Order().ToList());
        await processor.CloseAsync();

        // Without a time-out that could end the first session, only its release lets the second one in.
        var released = new ConcurrentQueue<string>();
        await Send(queue, InSession("x", 1), InSession("x", 2), InSession("y", 1));
        var releasing = Processor(queue, args =>
        {
            released.Enqueue($"{args.SessionId}{args.Message.Body}");
            args.ReleaseSession();
            return Task.CompletedTask;
        }, new ServiceBusSessionProcessorOptions { MaxConcurrentSessions = 1,
            SessionIdleTimeout = TimeSpan.FromMinutes(5) });
        await releasing.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(released.Count == 3), "all, each by a session of its own");
        Check.Equal(["x1", "x2", "y1"], released.Order().ToList());
        Check.Equal([], work.Complaints);
    }

    [Scenario("S428", "a thousand sessions are handled, each in order", Long = true, Seconds = 180)]
    public async Task ManySessions()
    {
        var queue = await Sessions("s428");
        await using (var sender = Client.CreateSender(queue))
        {
            foreach (var n in new[] { 1, 2 })
            {
                await sender.SendMessagesAsync(Enumerable.Range(0, 1000).Select(id => InSession($"session {id}", n)));
            }
        }
        var seen = new ConcurrentDictionary<string, string>();
        var (working, most, wrong) = (0, 0, 0);
        var processor = Processor(queue, args =>
        {
            var now = Interlocked.Increment(ref working);
            most = Math.Max(most, now);
            seen.AddOrUpdate(args.SessionId, $"{args.Message.Body}", (_, before) => before + args.Message.Body);
            if (seen[args.SessionId] is "2" or "11" or "22" or "21")
            {
                Interlocked.Increment(ref wrong);
            }
            if (seen[args.SessionId] == "12")
            {
                args.ReleaseSession();
            }
            Interlocked.Decrement(ref working);
            return Task.CompletedTask;
        }, new ServiceBusSessionProcessorOptions { MaxConcurrentSessions = 50, SessionIdleTimeout = Seconds(5) });
        await processor.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(seen.Count == 1000 && seen.Values.All(each => each == "12")),
            "both messages of every session", Seconds(120));
        await processor.StopProcessingAsync();
        Check.Equal(0, wrong);
        Check.True(most <= 50, $"{most} handlers at once");
        Check.Equal(0, (await PeekAll(Client.CreateReceiver(queue))).Count);
        Check.Equal([], work.Complaints);
    }

    [Scenario("S429", "several handlers may work in one session, and a close leaves it to others")]
    public async Task HandlersInASession()
    {
        var queue = await Sessions("s429");
        await Send(queue, [.. Enumerable.Range(1, 6).Select(n => InSession("one", n))]);
        var (working, most) = (0, 0);
        var gate = new SemaphoreSlim(0);
        var processor = Processor(queue, async args =>
        {
            most = Math.Max(most, Interlocked.Increment(ref working));
            await gate.WaitAsync(args.CancellationToken);
            Interlocked.Decrement(ref working);
        }, new ServiceBusSessionProcessorOptions { MaxConcurrentSessions = 2, MaxConcurrentCallsPerSession = 3 });
        await processor.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(working == 3), "three handlers in the session");
        await Fails(ServiceBusFailureReason.SessionCannotBeLocked, () => Connect().AcceptSessionAsync(queue, "one"));
        gate.Release(3);
        await Check.Eventually(() => Task.FromResult(working == 3 && gate.CurrentCount == 0), "the next three");
        Check.Equal(3, most);
        await processor.CloseAsync();
        await using var session = await Connect().AcceptSessionAsync(queue, "one");
        Check.Equal(["4", "5", "6"], Bodies(await Receive(session, 3)));
    }

    [Scenario("S559", "a session processor reports each error with its source")]
    public async Task ErrorSources()
    {
        var seen = new ConcurrentQueue<ProcessErrorEventArgs>();

        async Task<ProcessErrorEventArgs> First(
            string queue, Func<ProcessSessionMessageEventArgs, Task> handle, ServiceBusErrorSource source)
        {
            seen.Clear();
            var processor = Processor(queue, handle,
                new ServiceBusSessionProcessorOptions { MaxConcurrentSessions = 1 }, note: seen.Enqueue);
            await processor.StartProcessingAsync();
            await Check.Eventually(() => Task.FromResult(seen.Any(each => each.ErrorSource == source)),
                $"an error of {source}");
            await processor.CloseAsync();
            return seen.First(each => each.ErrorSource == source);
        }

        var nowhere = await First("s559-nowhere", _ => Task.CompletedTask, ServiceBusErrorSource.AcceptSession);
        Check.Equal(ServiceBusFailureReason.MessagingEntityNotFound,
            (nowhere.Exception as ServiceBusException)?.Reason);
        await CreateQueue("s559p");
        var plain = await First("s559p", _ => Task.CompletedTask, ServiceBusErrorSource.AcceptSession);
        Check.True(plain.Exception is InvalidOperationException, plain.Exception.ToString());

        var queue = await Sessions("s559", options => options.MaxDeliveryCount = 2);
        await Send(queue, InSession("x", "thrown"));
        var thrown = await First(queue, _ => throw new InvalidTimeZoneException("of the handler"),
            ServiceBusErrorSource.ProcessMessageCallback);
        Check.True(thrown.Exception is InvalidTimeZoneException, thrown.Exception.ToString());
        Check.Equal(queue, thrown.EntityPath);

        var other = await Sessions("s559b");
        await Send(other, InSession("x", "completed twice"));
        // What a handler itself asks for in vain is an error of the handler's.
        var twice = await First(other, async args =>
        {
            await args.CompleteMessageAsync(args.Message);
            await args.CompleteMessageAsync(args.Message);
        }, ServiceBusErrorSource.ProcessMessageCallback);
        // The client says so by itself: the delivery is none of its link's any more.
        Check.Equal(ServiceBusFailureReason.SessionLockLost, (twice.Exception as ServiceBusException)?.Reason);
    }
}

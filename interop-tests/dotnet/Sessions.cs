using System.Collections.Concurrent;
using System.Diagnostics;

namespace Interop;

class Sessions : Scenarios
{
    static readonly TimeSpan AtOnce = Seconds(2);

    /// <summary>Sends messages to these sessions, with bodies 1, 2, 3…</summary>
    Task SendTo(string queue, params string[] sessions) =>
        Send(queue, [.. sessions.Select((session, index) => InSession(session, index + 1))]);

    /// <summary>A client whose wait for a session ends after a time.</summary>
    ServiceBusClient Impatient(TimeSpan wait)
    {
        var options = Options(wait);
        options.RetryOptions.MaxRetries = 0;
        return Connect(options: options);
    }

    /// <summary>Checks that there is no next session, which takes about this long.</summary>
    Task<ServiceBusException> NoNextSession(string queue, TimeSpan wait) =>
        Fails(ServiceBusFailureReason.ServiceTimeout, () => Impatient(wait).AcceptNextSessionAsync(queue));

    Task<ServiceBusException> IsLocked(string queue, string session) =>
        Fails(ServiceBusFailureReason.SessionCannotBeLocked,
            () => Impatient(Deadline).AcceptSessionAsync(queue, session));

    /// <summary>
    /// Checks that a session is lost. A receiver that has noticed it is closed to the SDK, and its calls say only that.
    /// </summary>
    internal static async Task IsLost(Func<Task> call)
    {
        var failure = await Check.Throws<Exception>(call);
        Check.True(
            failure is ObjectDisposedException
                or ServiceBusException { Reason: ServiceBusFailureReason.SessionLockLost },
            $"{failure.GetType().Name}: {failure.Message}");
    }

    /// <summary>The names of a list of sessions.</summary>
    internal static async Task<List<string>> Listed(IAsyncEnumerable<string> sessions)
    {
        var names = new List<string>();
        await foreach (var name in sessions)
        {
            names.Add(name);
        }
        return [.. names.Order(StringComparer.Ordinal)];
    }

    static BinaryData State(params byte[] bytes) => new(bytes);

    [Scenario("S101", "a named session brings its messages and no others, in order")]
    public async Task ANamedSessionBringsItsMessagesInOrder()
    {
        await SendTo("s101", "a", "b", "a", "b", "a");
        foreach (var (name, wanted) in new[] { ("a", new[] { "1", "3", "5" }), ("b", ["2", "4"]) })
        {
            var receiver = await Client.AcceptSessionAsync("s101", name);
            Check.Equal(name, receiver.SessionId);
            Near(Now + Seconds(60), receiver.SessionLockedUntil, Seconds(5));
            var messages = await Receive(receiver, wanted.Length);
            Check.Equal(wanted, Bodies(messages));
            Check.True(messages.All(each => each.SessionId == name), "of another session");
            await ReceiveNothing(receiver);
        }
    }

    [Scenario("S102", "the next session is that of the message")]
    public async Task TheNextSessionIsThatOfTheMessage()
    {
        await SendTo("s102", "x");
        var receiver = await Client.AcceptNextSessionAsync("s102");
        Check.Equal("x", receiver.SessionId);
        Check.Equal(["1"], Bodies(await Receive(receiver, 1)));
    }

    [Scenario("S103", "two have the two sessions and a third has none")]
    public async Task TwoHaveTheTwoSessionsAndAThirdHasNone()
    {
        await SendTo("s103", "x", "y");
        ServiceBusSessionReceiver[] receivers =
            [await Client.AcceptNextSessionAsync("s103"), await Connect().AcceptNextSessionAsync("s103")];
        Check.Equal(["x", "y"], receivers.Select(each => each.SessionId).Order());
        foreach (var receiver in receivers)
        {
            Check.Equal(receiver.SessionId, (await ReceiveOne(receiver)).SessionId);
        }
        await NoNextSession("s103", Seconds(3));
    }

    [Scenario("S104", "the wait for a session ends when it was asked to")]
    public async Task TheWaitForASessionEnds()
    {
        var begin = Stopwatch.GetTimestamp();
        await NoNextSession("s104", Seconds(4));
        var waited = Stopwatch.GetElapsedTime(begin).TotalSeconds;
        Check.True(waited is >= 3 and <= 10, $"{waited} s");
    }

    [Scenario("S105", "a session that comes while one waits is granted")]
    public async Task ASessionThatComesWhileOneWaitsIsGranted()
    {
        var waiting = Client.AcceptNextSessionAsync("s105");
        await ReceiveNothing(await Client.AcceptSessionAsync("s105", "other"));
        await SendTo("s105", "late");
        var receiver = await waiting.WaitAsync(AtOnce);
        Check.Equal("late", receiver.SessionId);
        Check.Equal(["1"], Bodies(await Receive(receiver, 1)));
    }

    [Scenario("S106", "a session that becomes free while one waits is granted")]
    public async Task ASessionThatBecomesFreeWhileOneWaitsIsGranted()
    {
        await SendTo("s106", "x", "x");
        var first = await Client.AcceptSessionAsync("s106", "x");
        await first.CompleteMessageAsync(await ReceiveOne(first));
        var waiting = Connect().AcceptNextSessionAsync("s106");
        await ReceiveNothing(await Client.AcceptSessionAsync("s106", "other"));
        await first.CloseAsync();
        var receiver = await waiting.WaitAsync(AtOnce);
        Check.Equal("x", receiver.SessionId);
        Check.Equal(["2"], Bodies(await Receive(receiver, 1)));
    }

    [Scenario("S107", "a wait that was given up locks nothing")]
    public async Task AWaitThatWasGivenUpLocksNothing()
    {
        using var patience = new CancellationTokenSource(Seconds(2));
        await Check.Throws<OperationCanceledException>(
            () => Client.AcceptNextSessionAsync("s107", cancellationToken: patience.Token));
        var other = Connect();
        var waiting = other.AcceptNextSessionAsync("s107");
        await ReceiveNothing(await Client.AcceptSessionAsync("s107", "other"));
        await other.DisposeAsync();
        await Check.Throws<Exception>(() => waiting);
        await SendTo("s107", "x");
        var receiver = await Client.AcceptSessionAsync("s107", "x").WaitAsync(AtOnce);
        Check.Equal(["1"], Bodies(await Receive(receiver, 1)));
    }

    [Scenario("S108", "a session that never was is granted once")]
    public async Task ASessionThatNeverWasIsGrantedOnce()
    {
        // The first link of the client takes the time of its connection.
        await ReceiveNothing(await Client.AcceptSessionAsync("s108", "other"));
        var receiver = await Client.AcceptSessionAsync("s108", "new").WaitAsync(AtOnce);
        await IsLocked("s108", "new");
        await SendTo("s108", "new");
        Check.Equal(["1"], Bodies(await Receive(receiver, 1)));
    }

    [Scenario("S109", "a session that is locked elsewhere is refused until it is free")]
    public async Task ASessionThatIsLockedElsewhereIsRefused()
    {
        var receiver = await Client.AcceptSessionAsync("s109", "x");
        var begin = Stopwatch.GetTimestamp();
        await IsLocked("s109", "x");
        Check.True(Stopwatch.GetElapsedTime(begin) < Seconds(5), "refused late");
        await receiver.CloseAsync();
        await Accepted("s109", "x", AtOnce);
    }

    /// <summary>Tries on another connection until a session is granted.</summary>
    async Task<ServiceBusSessionReceiver> Accepted(string queue, string session, TimeSpan deadline)
    {
        ServiceBusSessionReceiver? receiver = null;
        var other = Impatient(Deadline);
        await Check.Eventually(async () =>
        {
            try
            {
                receiver = await other.AcceptSessionAsync(queue, session);
                return true;
            }
            catch (ServiceBusException error) when (error.Reason == ServiceBusFailureReason.SessionCannotBeLocked)
            {
                return false;
            }
        }, $"session {session} is free", deadline);
        return receiver!;
    }

    [Scenario("S110", "a renewed session lasts")]
    public async Task ARenewedSessionLasts()
    {
        await SendTo("s110", "x");
        var receiver = await Client.AcceptSessionAsync("s110", "x");
        var message = await ReceiveOne(receiver);
        for (var round = 0; round < 4; round += 1)
        {
            var until = receiver.SessionLockedUntil;
            await ReceiveNothing(receiver, Seconds(2));
            await IsLocked("s110", "x");
            await receiver.RenewSessionLockAsync();
            Check.True(receiver.SessionLockedUntil > until, $"{receiver.SessionLockedUntil:O} is not after {until:O}");
            Near(Now + Seconds(5), receiver.SessionLockedUntil, Seconds(2));
        }
        await receiver.CompleteMessageAsync(message);
        Check.Equal(0, (await PeekAll(receiver)).Count);
    }

    [Scenario("S111", "a session that expires is lost and what was received counts")]
    public async Task ASessionThatExpiresIsLost()
    {
        await SendTo("s111", "x");
        var receiver = await Client.AcceptSessionAsync("s111", "x");
        var begin = Stopwatch.GetTimestamp();
        var message = await ReceiveOne(receiver);
        var next = await Accepted("s111", "x", Seconds(15));
        Check.True(Stopwatch.GetElapsedTime(begin) >= Seconds(4), "before the lock's end");
        await IsLost(() => receiver.CompleteMessageAsync(message));
        await IsLost(() => receiver.RenewSessionLockAsync());
        await IsLost(() => receiver.GetSessionStateAsync());
        var again = await ReceiveOne(next);
        Check.Equal("1", again.Body.ToString());
        Check.Equal(1, Count(again));
    }

    [Scenario("S112", "a processor's own renewal holds a session")]
    public async Task AProcessorsOwnRenewalHoldsASession()
    {
        await SendTo("s112", "x");
        var handling = new Handling();
        var processor = Own(Client.CreateSessionProcessor("s112", new ServiceBusSessionProcessorOptions
        {
            MaxAutoLockRenewalDuration = Seconds(30), MaxConcurrentSessions = 1, AutoCompleteMessages = false,
        }));
        processor.ProcessMessageAsync += arguments => handling.Run(async () =>
        {
            await ReceiveNothing(Client.CreateReceiver("s112", DeadLetters), Seconds(8));
            await IsLocked("s112", "x");
            await arguments.CompleteMessageAsync(arguments.Message);
        });
        processor.ProcessErrorAsync += handling.Failed;
        await processor.StartProcessingAsync();
        await handling.Done;
        await processor.StopProcessingAsync();
        Check.Equal(0, (await PeekAll(Client.CreateReceiver("s112"))).Count);
    }

    [Scenario("S113", "a session that is closed is free at once and nothing is counted")]
    public async Task ASessionThatIsClosedIsFreeAtOnce()
    {
        await SendTo("s113", "x", "x", "x");
        var receiver = await Client.AcceptSessionAsync("s113", "x");
        await Receive(receiver, 2);
        await receiver.CloseAsync();
        var again = await Receive(await Accepted("s113", "x", AtOnce), 3);
        Check.Equal(Texts(1, 3), Bodies(again));
        Check.Equal([0, 0, 0], Counts(again));
    }

    [Scenario("S115", "an abandoned message comes again first")]
    public async Task AnAbandonedMessageComesAgainFirst()
    {
        await SendTo("s115", "x", "x", "x");
        var receiver = await Client.AcceptSessionAsync("s115", "x");
        await receiver.AbandonMessageAsync(await ReceiveOne(receiver));
        var again = await Receive(receiver, 3);
        Check.Equal(Range(1, 3), Numbers(again));
        Check.Equal([1, 0, 0], Counts(again));
    }

    [Scenario("S116", "a processor takes ten sessions, three at a time, each in order")]
    public async Task AProcessorTakesTenSessionsThreeAtATime()
    {
        await using (var sender = Client.CreateSender("s116"))
        {
            await sender.SendMessagesAsync(Enumerable.Range(0, 200)
                .Select(each => InSession($"session-{each % 10}", each)));
        }
        var seen = new ConcurrentDictionary<string, ConcurrentQueue<int>>();
        var busy = new ConcurrentDictionary<string, bool>();
        var complaints = new ConcurrentQueue<string>();
        var count = 0;
        var processor = Own(Client.CreateSessionProcessor("s116", new ServiceBusSessionProcessorOptions
        {
            MaxConcurrentSessions = 3, SessionIdleTimeout = Seconds(1),
        }));
        processor.ProcessMessageAsync += async arguments =>
        {
            if (!busy.TryAdd(arguments.SessionId, true) || busy.Count > 3)
            {
                complaints.Enqueue($"{arguments.SessionId} while busy with {string.Join(' ', busy.Keys)}");
            }
            seen.GetOrAdd(arguments.SessionId, _ => new()).Enqueue(int.Parse(arguments.Message.Body.ToString()));
            await Task.Yield();
            busy.TryRemove(arguments.SessionId, out _);
            Interlocked.Increment(ref count);
        };
        processor.ProcessErrorAsync += arguments =>
        {
            complaints.Enqueue($"{arguments.ErrorSource}: {arguments.Exception.Message}");
            return Task.CompletedTask;
        };
        await processor.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(count >= 200),
            () => $"200 messages; {string.Join("; ", complaints)}", Seconds(60));
        await processor.StopProcessingAsync();
        Check.Equal("", string.Join("; ", complaints));
        Check.Equal(10, seen.Count);
        foreach (var (session, bodies) in seen)
        {
            var first = int.Parse(session["session-".Length..]);
            Check.Equal(Enumerable.Range(0, 20).Select(each => first + each * 10), bodies);
        }
    }

    [Scenario("S117", "what comes to a session that is held goes to its holder")]
    public async Task WhatComesToASessionThatIsHeldGoesToItsHolder()
    {
        var receiver = await Client.AcceptSessionAsync("s117", "x");
        await ReceiveNothing(receiver, Seconds(0.1));
        await SendTo("s117", "x", "x", "x");
        await NoNextSession("s117", Seconds(3));
        Check.Equal(Texts(1, 3), Bodies(await Receive(receiver, 3)));
    }

    [Scenario("S118", "a session has a state of its own")]
    public async Task ASessionHasAStateOfItsOwn()
    {
        var x = await Client.AcceptSessionAsync("s118", "x");
        var y = await Client.AcceptSessionAsync("s118", "y");
        Check.True(await x.GetSessionStateAsync() == null, "a state before it was set");
        foreach (var state in new byte[]?[] { [0, 255, 1], [2], [], null, [3] })
        {
            await x.SetSessionStateAsync(state == null ? null : new BinaryData(state));
            // Empty bytes take a state away, as null does.
            Check.Equal(state is { Length: > 0 } ? state : null, (await x.GetSessionStateAsync())?.ToArray());
            Check.True(await y.GetSessionStateAsync() == null, "another session's state");
        }
    }

    [Scenario("S119", "a state stays without messages too")]
    public async Task AStateStaysWithoutMessagesToo()
    {
        foreach (var state in new[] { [1, 2, 3], Pattern(200 * 1024) })
        {
            var receiver = await Accepted("s119", "idle", AtOnce);
            await receiver.SetSessionStateAsync(new BinaryData(state));
            await receiver.CloseAsync();
            var again = await Accepted("s119", "idle", AtOnce);
            Check.Equal(state, (await again.GetSessionStateAsync()).ToArray());
            await again.CloseAsync();
        }
    }

    [Scenario("S120", "sessions are listed that have messages or a state")]
    public async Task SessionsAreListed()
    {
        await SendTo("s120", "a", "b", "c", "e");
        var c = await Client.AcceptSessionAsync("s120", "c");
        var locked = await ReceiveOne(c);
        var d = await Client.AcceptSessionAsync("s120", "d");
        await d.SetSessionStateAsync(State(1));
        var e = await Client.AcceptSessionAsync("s120", "e");
        await e.CompleteMessageAsync(await ReceiveOne(e));
        Check.Equal(["a", "b", "c", "d"], await Listed(Client.GetMessageSessionsAsync("s120")));
        await c.CompleteMessageAsync(locked);
        await d.SetSessionStateAsync(null);
        Check.Equal(["a", "b"], await Listed(Client.GetMessageSessionsAsync("s120")));
    }

    [Scenario("S121", "sessions are listed whose state was set after a time")]
    public async Task SessionsAreListedByTheTimeOfTheirState()
    {
        await SendTo("s121", "plain");
        var old = await Client.AcceptSessionAsync("s121", "old");
        await old.SetSessionStateAsync(State(1));
        await ReceiveNothing(old);
        var between = Now;
        await ReceiveNothing(old);
        await (await Client.AcceptSessionAsync("s121", "new")).SetSessionStateAsync(State(2));
        Check.Equal(["new"], await Listed(Client.GetMessageSessionsAsync("s121", between)));
        Check.Equal(["new", "old"],
            await Listed(Client.GetMessageSessionsAsync("s121", between - TimeSpan.FromMinutes(5))));
    }

    [Scenario("S122", "250 sessions are listed page by page")]
    public async Task TwoHundredAndFiftySessionsAreListed()
    {
        var names = Enumerable.Range(0, 250).Select(each => $"session-{each:000}").ToList();
        await using (var sender = Client.CreateSender("s122"))
        {
            await sender.SendMessagesAsync(names.Select(each => InSession(each, each)));
        }
        Check.Equal(names, await Listed(Client.GetMessageSessionsAsync("s122")));
    }

    [Scenario("S123", "an empty queue has no sessions, and neither has a plain one")]
    public async Task AnEmptyQueueHasNoSessions()
    {
        Check.Equal([], await Listed(Client.GetMessageSessionsAsync("s123")));
        try
        {
            Check.Equal([], await Listed(Client.GetMessageSessionsAsync("s123b")));
        }
        catch (Exception refusal) when (refusal is ServiceBusException or InvalidOperationException)
        {
            Check.True(refusal is not ServiceBusException { Reason: ServiceBusFailureReason.ServiceTimeout },
                refusal.Message);
        }
    }

    [Scenario("S124", "deferred messages belong to their session")]
    public async Task DeferredMessagesBelongToTheirSession()
    {
        await SendTo("s124", "x", "x", "x");
        var first = await Client.AcceptSessionAsync("s124", "x");
        var messages = await Receive(first, 3);
        await first.DeferMessageAsync(messages[0]);
        await first.DeferMessageAsync(messages[1]);
        await first.CompleteMessageAsync(messages[2]);
        await first.CloseAsync();
        var again = await Accepted("s124", "x", AtOnce);
        await ReceiveNothing(again);
        var y = await Client.AcceptSessionAsync("s124", "y");
        await Fails(ServiceBusFailureReason.MessageNotFound, () => y.ReceiveDeferredMessagesAsync([1]));
        var deferred = await again.ReceiveDeferredMessagesAsync([1, 2]);
        Check.Equal(Texts(1, 2), Bodies(deferred));
        foreach (var message in deferred)
        {
            Check.Equal("x", message.SessionId);
            Check.Equal(ServiceBusMessageState.Deferred, message.State);
            await again.CompleteMessageAsync(message);
        }
        Check.Equal(0, (await PeekAll(again)).Count);
    }

    [Scenario("S575", "a deferred message is completed after the end of the lock with which it was received")]
    public async Task ADeferredMessageIsCompletedInARenewedSession()
    {
        await CreateQueue("s575", options => (options.RequiresSession, options.LockDuration) = (true, Seconds(5)));
        await SendTo("s575", "x");
        var receiver = await Client.AcceptSessionAsync("s575", "x");
        await receiver.DeferMessageAsync(await ReceiveOne(receiver));
        var message = await receiver.ReceiveDeferredMessageAsync(1);
        Check.Equal("1", message.Body.ToString());
        IsLockedWithItsSession(message);
        await RenewPast(receiver.SessionLockedUntil, "s575", async () =>
        {
            await receiver.RenewSessionLockAsync();
            return receiver.SessionLockedUntil;
        });
        await receiver.CompleteMessageAsync(message);
        Check.Equal(0, (await PeekAll(receiver)).Count);
        await receiver.CloseAsync();
        await ReceiveNothing(await Accepted("s575", "x", AtOnce));
    }

    [Scenario("S575", "a processor's handler does that, and keeps its session")]
    public async Task AHandlerCompletesADeferredMessageInARenewedSession()
    {
        await CreateQueue("s575p", options => (options.RequiresSession, options.LockDuration) = (true, Seconds(5)));
        await SendTo("s575p", "x");
        var handling = new Handling();
        var opened = 0;
        var processor = Own(Client.CreateSessionProcessor("s575p", new ServiceBusSessionProcessorOptions
        {
            AutoCompleteMessages = false, MaxConcurrentSessions = 1, MaxAutoLockRenewalDuration = TimeSpan.Zero,
        }));
        processor.SessionInitializingAsync += _ =>
        {
            Interlocked.Increment(ref opened);
            return Task.CompletedTask;
        };
        processor.ProcessMessageAsync += arguments => handling.Run(async () =>
        {
            await arguments.DeferMessageAsync(arguments.Message);
            var deferred = await arguments.GetReceiveActions().ReceiveDeferredMessagesAsync([1]);
            Check.Equal(["1"], Bodies(deferred));
            IsLockedWithItsSession(deferred[0]);
            await RenewPast(arguments.SessionLockedUntil, "s575p", async () =>
            {
                await arguments.RenewSessionLockAsync();
                return arguments.SessionLockedUntil;
            });
            await arguments.CompleteMessageAsync(deferred[0]);
        });
        processor.ProcessErrorAsync += handling.Failed;
        await processor.StartProcessingAsync();
        await handling.Done;
        Check.Equal(1, opened);
        await IsLocked("s575p", "x");
        await processor.StopProcessingAsync();
        Check.Equal(0, (await PeekAll(Client.CreateReceiver("s575p"))).Count);
    }

    /// <summary>
    /// Checks that a message's own lock has no end. The SDK takes a deferred message for lost at that time by itself.
    /// </summary>
    static void IsLockedWithItsSession(ServiceBusReceivedMessage message) =>
        Check.Equal(DateTimeOffset.FromUnixTimeMilliseconds(253_402_300_799_999), message.LockedUntil);

    /// <summary>Renews a session's lock until a second after the end that it had.</summary>
    async Task RenewPast(DateTimeOffset end, string queue, Func<Task<DateTimeOffset>> renew)
    {
        var dead = Client.CreateReceiver(queue, DeadLetters);
        var until = end;
        while (Now <= end + Seconds(1))
        {
            await ReceiveNothing(dead, Seconds(2));
            var renewed = await renew();
            Check.True(renewed > until, $"{renewed:O} is not after {until:O}");
            until = renewed;
        }
    }

    [Scenario("S125", "a scheduled message comes to its session when it is due")]
    public async Task AScheduledMessageComesToItsSession()
    {
        var sender = Client.CreateSender("s125");
        var begin = Stopwatch.GetTimestamp();
        var time = In(Seconds(3));
        var due = await sender.ScheduleMessageAsync(InSession("x", "due"), time);
        await sender.CancelScheduledMessageAsync(await sender.ScheduleMessageAsync(InSession("x", "cancelled"), time));
        var receiver = await Client.AcceptNextSessionAsync("s125");
        Check.True(Stopwatch.GetElapsedTime(begin) >= Seconds(2), "before its time");
        Check.Equal("x", receiver.SessionId);
        var message = await ReceiveOne(receiver);
        Check.Equal("due", message.Body.ToString());
        Check.True(message.SequenceNumber > due, $"number {message.SequenceNumber}, scheduled as {due}");
        await ReceiveNothing(receiver);
    }

    [Scenario("S126", "a peek of a session shows its messages only")]
    public async Task APeekOfASessionShowsItsMessagesOnly()
    {
        await SendTo("s126", "a", "b", "a", "b", "b");
        Check.Equal(["1", "3"], Bodies(await PeekAll(await Client.AcceptSessionAsync("s126", "a"))));
        Check.Equal(Texts(1, 5), Bodies(await PeekAll(Client.CreateReceiver("s126"))));
    }

    [Scenario("S127", "a message without a session is refused")]
    public async Task AMessageWithoutASessionIsRefused()
    {
        var sender = Client.CreateSender("s127");
        await Refuses("The SessionId was not set on a message", () => sender.SendMessageAsync(Message(1)));
        await sender.SendMessageAsync(InSession("x", 2));
        var message = await ReceiveOne(await Client.AcceptSessionAsync("s127", "x"));
        Check.Equal("2", message.Body.ToString());
        Check.Equal(1, message.SequenceNumber);
    }

    [Scenario("S128", "a receiver without a session is refused")]
    public Task AReceiverWithoutASessionIsRefused() =>
        Refuses("It is not possible for an entity that requires sessions to create a non-sessionful message receiver",
            () => Client.CreateReceiver("s128").ReceiveMessageAsync(Deadline));

    [Scenario("S129", "a plain queue has no sessions, and takes messages with session ids")]
    public async Task APlainQueueHasNoSessions()
    {
        const string text =
            "A sessionful message receiver cannot be created on an entity that does not require sessions";
        await Refuses(text, () => Client.AcceptSessionAsync("s129", "x"));
        await Refuses(text, () => Client.AcceptNextSessionAsync("s129"));
        await SendTo("s129", "x");
        Check.Equal("x", (await ReceiveOne(Client.CreateReceiver("s129"))).SessionId);
    }

    [Scenario("S130", "dead letters of sessions are received without one")]
    public async Task DeadLettersOfSessionsAreReceivedWithoutOne()
    {
        await SendTo("s130", "a", "b");
        foreach (var name in new[] { "a", "b" })
        {
            var receiver = await Client.AcceptSessionAsync("s130", name);
            await receiver.DeadLetterMessageAsync(await ReceiveOne(receiver), $"why {name}");
        }
        var dead = Client.CreateReceiver("s130", DeadLetters);
        var letters = (await Receive(dead, 2)).OrderBy(each => each.SequenceNumber).ToList();
        Check.Equal(["a", "b"], letters.Select(each => each.SessionId));
        Check.Equal(Range(1, 2), Numbers(letters));
        Check.Equal(["why a", "why b"], letters.Select(each => each.DeadLetterReason));
        await CompleteAll(dead, letters);
        Check.Equal(0, (await PeekAll(dead)).Count);
    }

    [Scenario("S131", "a message that fails too often leaves its session")]
    public async Task AMessageThatFailsTooOftenLeavesItsSession()
    {
        await SendTo("s131", "x", "x");
        var receiver = await Client.AcceptSessionAsync("s131", "x");
        for (var count = 0; count < 2; count += 1)
        {
            var message = await ReceiveOne(receiver);
            Check.Equal("1", message.Body.ToString());
            await receiver.AbandonMessageAsync(message);
        }
        Check.Equal("2", (await ReceiveOne(receiver)).Body.ToString());
        var letter = await ReceiveOne(Client.CreateReceiver("s131", DeadLetters));
        Check.Equal("1", letter.Body.ToString());
        Check.Equal("MaxDeliveryCountExceeded", letter.DeadLetterReason);
    }

    [Scenario("S132", "a session is received and deleted")]
    public async Task ASessionIsReceivedAndDeleted()
    {
        await SendTo("s132", "x", "x", "x");
        var options = new ServiceBusSessionReceiverOptions { ReceiveMode = ServiceBusReceiveMode.ReceiveAndDelete };
        var receiver = await Client.AcceptSessionAsync("s132", "x", options);
        Check.Equal(Texts(1, 3), Bodies(await Receive(receiver, 3)));
        Check.Equal(0, (await PeekAll(receiver)).Count);
    }

    [Scenario("S133", "an expired message is no reason to grant its session")]
    public async Task AnExpiredMessageIsNoReasonToGrant()
    {
        await Send("s133", new ServiceBusMessage("1") { SessionId = "x", TimeToLive = Seconds(1) });
        var letter = await ReceiveOne(Client.CreateReceiver("s133", DeadLetters));
        await NoNextSession("s133", Seconds(3));
        Check.Equal("x", letter.SessionId);
        Check.Equal("TTLExpiredException", letter.DeadLetterReason);
    }

    [Scenario("S134", "what was prefetched of a session is given back in order")]
    public async Task WhatWasPrefetchedOfASessionIsGivenBack()
    {
        await SendTo("s134", [.. Enumerable.Repeat("x", 10)]);
        var receiver = await Client.AcceptSessionAsync("s134", "x",
            new ServiceBusSessionReceiverOptions { PrefetchCount = 10 });
        await receiver.CompleteMessageAsync(await ReceiveOne(receiver));
        await receiver.CloseAsync();
        var rest = await Receive(await Accepted("s134", "x", AtOnce), 9);
        Check.Equal(Texts(2, 10), Bodies(rest));
        Check.Equal(Enumerable.Repeat(0, 9), Counts(rest));
    }

    [Scenario("S135", "a batch may mix sessions")]
    public async Task ABatchMayMixSessions()
    {
        await using (var sender = Client.CreateSender("s135"))
        {
            await sender.SendMessagesAsync([InSession("a", 1), InSession("b", 2), InSession("a", 3)]);
        }
        Check.Equal(["1", "3"], Bodies(await Receive(await Client.AcceptSessionAsync("s135", "a"), 2)));
        Check.Equal(["2"], Bodies(await Receive(await Client.AcceptSessionAsync("s135", "b"), 1)));
    }

    [Scenario("S136", "session ids may be long and strange, and are listed")]
    public async Task SessionIdsMayBeLongAndStrange()
    {
        string[] names = ["x", new('y', 128), "a b/c\\d ü?#%20"];
        await SendTo("s136", names);
        foreach (var name in names)
        {
            var receiver = await Client.AcceptSessionAsync("s136", name);
            Check.Equal(name, receiver.SessionId);
            Check.Equal(name, (await ReceiveOne(receiver)).SessionId);
        }
        Check.Equal(names.Order(StringComparer.Ordinal), await Listed(Client.GetMessageSessionsAsync("s136")));
        await Check.Throws<ArgumentException>(() => SendTo("s136", new string('z', 129)));
    }
}

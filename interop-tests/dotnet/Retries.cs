using System.Collections.Concurrent;
using System.Diagnostics;

namespace Interop;

/// <summary>Retry options, and cancellation tokens.</summary>
class Retries : Scenarios
{
    static ServiceBusClientOptions Trying(Action<ServiceBusRetryOptions> change)
    {
        var options = new ServiceBusClientOptions { RetryOptions =
            { TryTimeout = Seconds(1), MaxRetries = 0, Delay = Seconds(0.1) } };
        change(options.RetryOptions);
        return options;
    }

    /// <summary>A policy that notes what it is asked.</summary>
    sealed class Policy(int retries) : ServiceBusRetryPolicy
    {
        public ConcurrentQueue<(Exception Failure, int Attempt)> Asked { get; } = new();

        public override TimeSpan CalculateTryTimeout(int attemptCount) => Seconds(1 + attemptCount);

        public override TimeSpan? CalculateRetryDelay(Exception lastException, int attemptCount)
        {
            Asked.Enqueue((lastException, attemptCount));
            return attemptCount <= retries ? Seconds(0.1) : null;
        }
    }

    [Scenario("S539", "a send over a connection that says nothing ends with its try time-out, as often as it may try")]
    public async Task TimeOuts()
    {
        var queue = await CreateQueue("s539");
        var proxy = Own(new FaultProxy());
        foreach (var retries in new[] { 0, 2 })
        {
            var client = Connect(proxy.ConnectionString, Trying(options => options.MaxRetries = retries));
            var sender = client.CreateSender(queue);
            await sender.SendMessageAsync(Message("before"));
            proxy.Hold();
            var begin = Stopwatch.GetTimestamp();
            await Fails(ServiceBusFailureReason.ServiceTimeout, () => sender.SendMessageAsync(Message("held")));
            var passed = Stopwatch.GetElapsedTime(begin);
            Check.True(passed > Seconds(0.9 * (1 + retries)) && passed < Seconds(4 + 3 * retries),
                $"{passed} with {retries} retries");
            proxy.Release();
            await sender.SendMessageAsync(Message("after"));
        }
        // What was held has arrived, too: nobody took it back.
        await Check.Eventually(async () =>
        {
            var bodies = Bodies(await PeekAll(Client.CreateReceiver(queue)));
            return bodies.Count(each => each == "after") == 2 && bodies.Contains("held");
        }, "the messages");
    }

    [Scenario("S540", "a retry policy of one's own is asked about each failure")]
    public async Task OwnPolicy()
    {
        var queue = await CreateQueue("s540");
        var proxy = Own(new FaultProxy());
        proxy.Refuse();
        var policy = new Policy(2);
        var client = Connect(proxy.ConnectionString, Trying(options => options.CustomRetryPolicy = policy));
        await Fails(ServiceBusFailureReason.ServiceCommunicationProblem,
            () => client.CreateSender(queue).SendMessageAsync(Message(1)));
        Check.Equal([1, 2, 3], policy.Asked.Select(each => each.Attempt).ToList());
        Check.True(proxy.Connections >= 3, $"{proxy.Connections} connections");

        // What is final is not tried again.
        proxy.Accept();
        policy.Asked.Clear();
        var begin = Stopwatch.GetTimestamp();
        await Fails(ServiceBusFailureReason.MessagingEntityNotFound,
            () => client.CreateSender("s540-nowhere").SendMessageAsync(Message(1)));
        Check.True(Stopwatch.GetElapsedTime(begin) < Seconds(5), "an unknown queue was tried again and again");
        await client.CreateSender(queue).SendMessageAsync(Message("at last"));
        Check.Equal("at last", (await ReceiveOne(client.CreateReceiver(queue))).Body.ToString());
    }

    [Scenario("S541", "what is cancelled ends at once and takes no message with it")]
    public async Task Cancelled()
    {
        var queue = await CreateQueue("s541");
        var sessions = await CreateQueue("s541s", options => options.RequiresSession = true);
        var proxy = Own(new FaultProxy());
        var client = Connect(proxy.ConnectionString);
        var (sender, receiver) = (client.CreateSender(queue), client.CreateReceiver(queue));
        await sender.SendMessageAsync(Message("first"));
        await receiver.CompleteMessageAsync(await ReceiveOne(receiver));
        async Task Ends(string what, Func<CancellationToken, Task> call, bool before = false)
        {
            using var cancel = new CancellationTokenSource();
            if (before)
            {
                await cancel.CancelAsync();
            }
            var running = call(cancel.Token);
            cancel.CancelAfter(300);
            var begin = Stopwatch.GetTimestamp();
            await Check.Throws<OperationCanceledException>(() => running);
            Check.True(Stopwatch.GetElapsedTime(begin) < Seconds(3), $"{what} ended late");
        }

        await Ends("a receive", token => receiver.ReceiveMessageAsync(Deadline, token));
        await Ends("a receive that was cancelled before", token => receiver.ReceiveMessageAsync(Deadline, token), true);
        await Ends("an enumeration", async token =>
        {
            await foreach (var message in receiver.ReceiveMessagesAsync(token))
            {
                Check.True(false, $"a message: {message.Body}");
            }
            // It ends without an exception.
            token.ThrowIfCancellationRequested();
        });
        await Ends("an accept of any session",
            token => client.AcceptNextSessionAsync(sessions, cancellationToken: token));
        await Ends("a send that was cancelled before", token => sender.SendMessageAsync(Message("never"), token), true);
        await Ends("a schedule that was cancelled before",
            token => sender.ScheduleMessageAsync(Message("never"), In(Seconds(1)), token), true);
        proxy.Hold();
        await Ends("a send", token => sender.SendMessageAsync(Message("held"), token));
        proxy.Release();

        // The receives that were cancelled hold none of what comes now, and the accept no session.
        await Send(queue, Message("a"), Message("b"));
        var other = Connect().CreateReceiver(queue);
        var bodies = new List<string>();
        while (!bodies.Contains("a") || !bodies.Contains("b"))
        {
            var message = await ReceiveOne(other, Seconds(20));
            Check.Equal(0, Count(message));
            bodies.Add(message.Body.ToString());
        }
        Check.True(!bodies.Contains("never"), "what was cancelled before its start was sent");
        await Send(sessions, InSession("x", 1));
        await using var session = await Connect().AcceptSessionAsync(sessions, "x");
        Check.Equal("1", (await ReceiveOne(session)).Body.ToString());
    }
}

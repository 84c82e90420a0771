using System.Diagnostics;

namespace Interop;

/// <summary>Links, connections and networks that end while clients are at work.</summary>
class Reconnecting : MoreScenarios
{
    /// <summary>A connection through the fault proxy.</summary>
    ServiceBusClient Through(FaultProxy proxy, ServiceBusClientOptions? options = null) =>
        Connect(Own(proxy).ConnectionString, options);

    /// <summary>
    /// A sender and a receiver work, something happens to both, and they work again: with the same objects.
    /// </summary>
    async Task Survives(string queue, Action<FaultProxy> happens)
    {
        var proxy = new FaultProxy();
        var client = Through(proxy);
        var sender = client.CreateSender(queue);
        var receiver = client.CreateReceiver(queue);
        await sender.SendMessageAsync(Message("before"));
        await receiver.CompleteMessageAsync(await ReceiveOne(receiver));
        happens(proxy);
        await sender.SendMessageAsync(Message("after"));
        var after = await ReceiveOne(receiver);
        Check.Equal("after", after.Body.ToString());
        await receiver.CompleteMessageAsync(after);
        await ReceiveNothing(receiver);
        Check.Equal([], Bodies(await PeekAll(Client.CreateReceiver(queue))));
    }

    [Scenario("S301", "a sender and a receiver survive a forced detach")]
    public Task ASenderAndAReceiverSurviveAForcedDetach() =>
        Survives("s301", proxy => Check.True(proxy.Detach("s301") >= 2, "no links to detach"));

    [Scenario("S302", "a waiting receive survives a forced detach")]
    public async Task AWaitingReceiveSurvivesAForcedDetach()
    {
        var proxy = new FaultProxy();
        var receiver = Through(proxy).CreateReceiver("s302");
        await ReceiveNothing(receiver, Seconds(0.1));
        var receiving = receiver.ReceiveMessageAsync(Seconds(15));
        Check.True(proxy.Detach("s302") >= 1, "no link to detach");
        await Send("s302", Message("now"));
        var sent = Stopwatch.GetTimestamp();
        var message = await receiving ?? await receiver.ReceiveMessageAsync(Seconds(15));
        Check.Equal("now", message?.Body.ToString() ?? "nothing");
        Check.True(Stopwatch.GetElapsedTime(sent) < Seconds(15), $"after {Stopwatch.GetElapsedTime(sent)}");
    }

    [Scenario("S303", "a message is completed after a forced detach, or comes again")]
    public async Task AMessageIsCompletedAfterAForcedDetachOrComesAgain()
    {
        await Send("s303", Message(1));
        var proxy = new FaultProxy();
        var receiver = Through(proxy).CreateReceiver("s303");
        var message = await ReceiveOne(receiver);
        Check.True(proxy.Detach("s303") >= 1, "no link to detach");
        var failure = await FailureOf(() => receiver.CompleteMessageAsync(message));
        var other = Client.CreateReceiver("s303");
        if (failure == null)
        {
            await ReceiveNothing(other, Seconds(12));
        }
        else
        {
            Check.Equal(ServiceBusFailureReason.MessageLockLost, (failure as ServiceBusException)?.Reason);
            var again = await ReceiveOne(other);
            Check.Equal(1, Count(again));
            await other.CompleteMessageAsync(again);
        }
        Check.Equal([], Bodies(await PeekAll(other)));
    }

    [Scenario("S304", "a forced detach ends a session")]
    public async Task AForcedDetachEndsASession()
    {
        await Send("s304", InSession("x", 1), InSession("x", 2));
        var proxy = new FaultProxy();
        var receiver = await Through(proxy).AcceptSessionAsync("s304", "x");
        await receiver.SetSessionStateAsync(new BinaryData("state"));
        var message = await ReceiveOne(receiver);
        Check.True(proxy.Detach("s304") >= 1, "no link to detach");
        // 7.21.0 documents SessionLockLost, and throws ObjectDisposedException.
        Func<Task>[] calls = [() => receiver.CompleteMessageAsync(message),
            () => receiver.ReceiveMessageAsync(Seconds(1))];
        foreach (var call in calls)
        {
            var failure = await FailureOf(call);
            var isLost = (failure as ServiceBusException)?.Reason == ServiceBusFailureReason.SessionLockLost;
            Check.True(isLost || failure is ObjectDisposedException, $"{failure}");
        }
        var begin = Stopwatch.GetTimestamp();
        var next = await Client.AcceptSessionAsync("s304", "x");
        Check.True(Stopwatch.GetElapsedTime(begin) < Seconds(5), $"after {Stopwatch.GetElapsedTime(begin)}");
        Check.Equal("state", (await next.GetSessionStateAsync()).ToString());
        Check.Equal(Texts(1, 2), Bodies(await Receive(next, 2)));
    }

    [Scenario("S305", "a sender and a receiver survive a closed connection")]
    public Task ASenderAndAReceiverSurviveAClosedConnection() =>
        Survives("s305", proxy => Check.True(proxy.CloseAll() >= 1, "no connection to close"));

    [Scenario("S306", "a sender and a receiver survive a connection that is reset")]
    public Task ASenderAndAReceiverSurviveAConnectionThatIsReset() =>
        Survives("s306", proxy => Check.True(proxy.Cut() >= 1, "no connection to reset"));

    [Scenario("S307", "a send without an answer times out")]
    public async Task ASendWithoutAnAnswerTimesOut()
    {
        var proxy = new FaultProxy();
        var options = Options(Seconds(3));
        options.RetryOptions.MaxRetries = 0;
        var sender = Through(proxy, options).CreateSender("s307");
        await sender.SendMessageAsync(Message("before"));
        proxy.Hold();
        var begin = Stopwatch.GetTimestamp();
        await Fails(ServiceBusFailureReason.ServiceTimeout, () => sender.SendMessageAsync(Message("lost")));
        Check.True(Stopwatch.GetElapsedTime(begin) < Seconds(10), $"after {Stopwatch.GetElapsedTime(begin)}");
        proxy.Release();
        await sender.SendMessageAsync(Message("after"));
        var there = Bodies(await PeekAll(Client.CreateReceiver("s307")));
        there.Remove("lost");
        Check.Equal(["before", "after"], there);
    }

    [Scenario("S317", "a processor survives")]
    public async Task AProcessorSurvives()
    {
        var proxy = new FaultProxy();
        var work = new Work();
        var processor = Own(Through(proxy).CreateProcessor("s317"));
        processor.ProcessMessageAsync += work.Take;
        processor.ProcessErrorAsync += work.Failed;
        await processor.StartProcessingAsync();
        var looking = Client.CreateReceiver("s317");
        await Send("s317", Message(1));
        await work.Until(1);
        await BecomesEmpty(looking);
        Check.True(proxy.Detach("s317") >= 1, "no link to detach");
        await Send("s317", Message(2));
        await work.Until(2, Seconds(15));
        await BecomesEmpty(looking);
        Check.True(proxy.Cut() >= 1, "no connection to reset");
        await Send("s317", Message(3));
        await work.Until(3, Seconds(15));
        Check.Equal(Texts(1, 3), Sorted(work.Bodies.Distinct()));
        await processor.StopProcessingAsync();
    }
}

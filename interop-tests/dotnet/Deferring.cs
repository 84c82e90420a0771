namespace Interop;

class Deferring : Scenarios
{
    /// <summary>Sends messages, receives and defers them, and returns their numbers.</summary>
    async Task<List<long>> Defer(ServiceBusReceiver receiver, string queue, int count)
    {
        await SendNumbered(queue, count);
        var messages = await Receive(receiver, count);
        foreach (var message in messages)
        {
            await receiver.DeferMessageAsync(message);
        }
        return Numbers(messages);
    }

    static Task<ServiceBusException> AreNotFound(ServiceBusReceiver receiver, params long[] numbers) =>
        Fails(ServiceBusFailureReason.MessageNotFound, () => receiver.ReceiveDeferredMessagesAsync(numbers));

    [Scenario("S53", "deferred messages are received by their numbers")]
    public async Task DeferredMessagesAreReceivedByTheirNumbers()
    {
        var receiver = Client.CreateReceiver("s53");
        var wanted = await Defer(receiver, "s53", 3);
        await ReceiveNothing(receiver);
        List<ServiceBusReceivedMessage> messages =
        [
            await receiver.ReceiveDeferredMessageAsync(wanted[0]),
            .. await receiver.ReceiveDeferredMessagesAsync(wanted[1..]),
        ];
        Check.Equal(Range(1, 3), Numbers(messages));
        Check.Equal(Texts(1, 3), Bodies(messages));
        foreach (var message in messages)
        {
            Check.Equal(ServiceBusMessageState.Deferred, message.State);
            Check.True(message.LockedUntil > Now, $"locked until {message.LockedUntil:O}");
            await receiver.CompleteMessageAsync(message);
        }
        Check.Equal(0, (await PeekAll(receiver)).Count);
    }

    [Scenario("S54", "deferred messages are received and deleted")]
    public async Task DeferredMessagesAreReceivedAndDeleted()
    {
        var wanted = await Defer(Client.CreateReceiver("s54"), "s54", 2);
        var receiver = Client.CreateReceiver("s54", Destructive);
        Check.Equal(Texts(1, 2), Bodies(await receiver.ReceiveDeferredMessagesAsync(wanted)));
        Check.Equal(0, (await PeekAll(receiver)).Count);
        await AreNotFound(receiver, [.. wanted]);
    }

    [Scenario("S55", "deferred messages are received all or not at all")]
    public async Task DeferredMessagesAreReceivedAllOrNotAtAll()
    {
        var receiver = Client.CreateReceiver("s55");
        await Defer(receiver, "s55", 3);
        await AreNotFound(receiver, 3, 4);
        await AreNotFound(receiver, 5, 6, 7);
        Check.Equal(1, (await Connect().CreateReceiver("s55").ReceiveDeferredMessageAsync(1)).SequenceNumber);
        await AreNotFound(receiver, 1);
        Check.Equal([3L], Numbers(await receiver.ReceiveDeferredMessagesAsync([3])));
    }

    [Scenario("S56", "deferred messages are settled by their lock tokens")]
    public async Task DeferredMessagesAreSettledByTheirLockTokens()
    {
        var receiver = Client.CreateReceiver("s56");
        await Defer(receiver, "s56", 3);
        var messages = await receiver.ReceiveDeferredMessagesAsync([1, 2, 3]);
        await receiver.AbandonMessageAsync(messages[0]);
        await receiver.DeadLetterMessageAsync(messages[1], "why", "because");
        await receiver.RenewMessageLockAsync(messages[2]);
        Check.True(messages[2].LockedUntil > Now, $"locked until {messages[2].LockedUntil:O}");
        await receiver.DeferMessageAsync(messages[2]);
        await ReceiveNothing(receiver);
        Check.Equal(["1", "3"], Bodies(await receiver.ReceiveDeferredMessagesAsync([1, 3])));
        var letter = await ReceiveOne(Client.CreateReceiver("s56", DeadLetters));
        Check.Equal("2", letter.Body.ToString());
        Check.Equal("why", letter.DeadLetterReason);
        Check.Equal("because", letter.DeadLetterErrorDescription);
    }

    [Scenario("S57", "a deferred message can be peeked")]
    public async Task ADeferredMessageCanBePeeked()
    {
        var receiver = Client.CreateReceiver("s57");
        var wanted = await Defer(receiver, "s57", 1);
        var seen = await PeekAll(receiver);
        Check.Equal(wanted, Numbers(seen));
        Check.Equal(ServiceBusMessageState.Deferred, seen[0].State);
    }

    [Scenario("S58", "a deferred message does not expire")]
    public async Task ADeferredMessageDoesNotExpire()
    {
        var receiver = Client.CreateReceiver("s58");
        var receiving = ReceiveOne(receiver);
        await Send("s58", new ServiceBusMessage("kept") { TimeToLive = Seconds(2) });
        var message = await receiving;
        await receiver.DeferMessageAsync(message);
        await ReceiveNothing(Client.CreateReceiver("s58", DeadLetters), Seconds(4));
        Check.Equal("kept", (await receiver.ReceiveDeferredMessageAsync(message.SequenceNumber)).Body.ToString());
    }

    [Scenario("S59", "a deferral changes the properties named")]
    public async Task ADeferralChangesThePropertiesNamed()
    {
        var sent = With("attempt", 0);
        sent.ApplicationProperties["kept"] = true;
        await Send("s59", sent);
        var receiver = Client.CreateReceiver("s59");
        await receiver.DeferMessageAsync(await ReceiveOne(receiver),
            new Dictionary<string, object> { ["attempt"] = 1 });
        var deferred = await receiver.ReceiveDeferredMessageAsync(1);
        Check.Equal<object>(1, deferred.ApplicationProperties["attempt"]);
        Check.Equal<object>(true, deferred.ApplicationProperties["kept"]);
        Check.Equal(2, deferred.ApplicationProperties.Count);
        await receiver.AbandonMessageAsync(deferred, new Dictionary<string, object> { ["attempt"] = 2 });
        Check.Equal<object>(2, (await receiver.ReceiveDeferredMessageAsync(1)).ApplicationProperties["attempt"]);
    }
}

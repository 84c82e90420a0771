using System.Diagnostics;

namespace Interop;

class Settling : Scenarios
{
    [Scenario("S20", "an abandoned message comes again before the next")]
    public async Task AnAbandonedMessageComesAgainBeforeTheNext()
    {
        await SendNumbered("s20", 2);
        var receiver = Client.CreateReceiver("s20");
        var first = await ReceiveOne(receiver);
        await receiver.AbandonMessageAsync(first);
        var next = await Receive(receiver, 2);
        Check.Equal(Range(1, 2), Numbers(next));
        Check.Equal(0, Count(first));
        Check.Equal([1, 0], Counts(next));
        Check.True(first.LockToken != next[0].LockToken, "the same lock token");
    }

    [Scenario("S21", "an abandon changes the properties named")]
    public async Task AnAbandonChangesThePropertiesNamed()
    {
        var message = With("attempt", 0);
        message.ApplicationProperties["kept"] = "kept";
        await Send("s21", message);
        var receiver = Client.CreateReceiver("s21");
        await receiver.AbandonMessageAsync(await ReceiveOne(receiver),
            new Dictionary<string, object> { ["attempt"] = 1, ["added"] = "new" });
        var again = await ReceiveOne(receiver);
        Check.Equal(3, again.ApplicationProperties.Count);
        Check.Equal<object>(1, again.ApplicationProperties["attempt"]);
        Check.Equal<object>("kept", again.ApplicationProperties["kept"]);
        Check.Equal<object>("new", again.ApplicationProperties["added"]);
        await receiver.AbandonMessageAsync(again, new Dictionary<string, object> { ["attempt"] = 2 });
        Check.Equal<object>(2, (await ReceiveOne(receiver)).ApplicationProperties["attempt"]);
    }

    [Scenario("S22", "a dead letter carries its reason and description")]
    public async Task ADeadLetterCarriesItsReasonAndDescription()
    {
        var message = With("key", "value");
        message.Subject = "subject";
        await Send("s22", message);
        var receiver = Client.CreateReceiver("s22");
        var received = await ReceiveOne(receiver);
        await receiver.DeadLetterMessageAsync(received, "why", "because");
        await ReceiveNothing(receiver);
        var dead = await ReceiveOne(Client.CreateReceiver("s22", DeadLetters));
        Check.Equal("why", dead.DeadLetterReason);
        Check.Equal("because", dead.DeadLetterErrorDescription);
        Check.Equal("value", dead.Body.ToString());
        Check.Equal("subject", dead.Subject);
        Check.Equal<object>("value", dead.ApplicationProperties["key"]);
        Check.Equal(received.SequenceNumber, dead.SequenceNumber);
    }

    [Scenario("S23", "a message is dead-lettered without a reason or with properties")]
    public async Task AMessageIsDeadLetteredWithoutAReasonOrWithProperties()
    {
        await SendNumbered("s23", 3);
        var receiver = Client.CreateReceiver("s23");
        var messages = await Receive(receiver, 3);
        var attempt = new Dictionary<string, object> { ["attempt"] = 1 };
        await receiver.DeadLetterMessageAsync(messages[0]);
        await receiver.DeadLetterMessageAsync(messages[1], attempt, "why", "because");
        await receiver.DeadLetterMessageAsync(messages[2], attempt);
        var dead = await Receive(Client.CreateReceiver("s23", DeadLetters), 3);
        Check.Equal(Texts(1, 3), Bodies(dead));
        Check.Equal(null, dead[0].DeadLetterReason);
        Check.Equal("why", dead[1].DeadLetterReason);
        Check.Equal("because", dead[1].DeadLetterErrorDescription);
        Check.Equal<object>(1, dead[1].ApplicationProperties["attempt"]);
        Check.Equal<object>(1, dead[2].ApplicationProperties["attempt"]);
    }

    [Scenario("S24", "the third failed delivery is the last")]
    public async Task TheThirdFailedDeliveryIsTheLast()
    {
        await SendNumbered("s24", 1);
        var receiver = Client.CreateReceiver("s24");
        for (var count = 0; count < 3; count += 1)
        {
            var message = await ReceiveOne(receiver);
            Check.Equal(count, Count(message));
            await receiver.AbandonMessageAsync(message);
        }
        await ReceiveNothing(receiver);
        var dead = await ReceiveOne(Client.CreateReceiver("s24", DeadLetters));
        Check.Equal("MaxDeliveryCountExceeded", dead.DeadLetterReason);
        Check.Equal("Message could not be consumed after 3 delivery attempts.", dead.DeadLetterErrorDescription);
    }

    [Scenario("S25", "one delivery is all there is")]
    public async Task OneDeliveryIsAllThereIs()
    {
        await SendNumbered("s25", 1);
        var receiver = Client.CreateReceiver("s25");
        await receiver.AbandonMessageAsync(await ReceiveOne(receiver));
        var dead = await ReceiveOne(Client.CreateReceiver("s25", DeadLetters));
        Check.Equal("MaxDeliveryCountExceeded", dead.DeadLetterReason);
    }

    [Scenario("S26", "a lock that has expired frees the message and is lost")]
    public async Task ALockThatHasExpiredIsLost()
    {
        await SendNumbered("s26", 1);
        var receiver = Client.CreateReceiver("s26");
        var first = await ReceiveOne(receiver);
        var begin = Stopwatch.GetTimestamp();
        var second = await ReceiveOne(receiver, Seconds(15));
        Check.True(Stopwatch.GetElapsedTime(begin) >= Seconds(4), "before the lock's end");
        Check.Equal(1, Count(second));
        Check.True(first.LockToken != second.LockToken, "the same lock token");
        await Fails(ServiceBusFailureReason.MessageLockLost, () => receiver.CompleteMessageAsync(first));
        await receiver.CompleteMessageAsync(second);
        await ReceiveNothing(receiver);
    }

    [Scenario("S27", "a renewed lock lasts")]
    public async Task ARenewedLockLasts()
    {
        await SendNumbered("s27", 1);
        var receiver = Client.CreateReceiver("s27");
        var message = await ReceiveOne(receiver);
        for (var round = 0; round < 4; round += 1)
        {
            var until = message.LockedUntil;
            await ReceiveNothing(receiver, Seconds(2));
            await receiver.RenewMessageLockAsync(message);
            Check.True(message.LockedUntil > until, $"{message.LockedUntil:O} is not after {until:O}");
            Near(Now + Seconds(5), message.LockedUntil, Seconds(2));
        }
        await receiver.CompleteMessageAsync(message);
        await ReceiveNothing(receiver);
    }

    [Scenario("S28", "a lock that is gone cannot be renewed")]
    public async Task ALockThatIsGoneCannotBeRenewed()
    {
        await SendNumbered("s28", 2);
        var receiver = Client.CreateReceiver("s28");
        var messages = await Receive(receiver, 2);
        await receiver.CompleteMessageAsync(messages[0]);
        await Fails(ServiceBusFailureReason.MessageLockLost, () => receiver.RenewMessageLockAsync(messages[0]));
        await ReceiveOne(receiver, Seconds(15));
        await Fails(ServiceBusFailureReason.MessageLockLost, () => receiver.RenewMessageLockAsync(messages[1]));
    }

    [Scenario("S29", "a processor's own renewal holds a lock")]
    public async Task AProcessorsOwnRenewalHoldsALock()
    {
        await SendNumbered("s29", 1);
        var other = Client.CreateReceiver("s29");
        var counts = new List<int>();
        var handling = new Handling();
        var processor = Own(Client.CreateProcessor("s29",
            new ServiceBusProcessorOptions { MaxAutoLockRenewalDuration = Seconds(30) }));
        processor.ProcessMessageAsync += arguments => handling.Run(async () =>
        {
            counts.Add(Count(arguments.Message));
            await ReceiveNothing(other, Seconds(8));
            await arguments.CompleteMessageAsync(arguments.Message);
        });
        processor.ProcessErrorAsync += handling.Failed;
        await processor.StartProcessingAsync();
        await handling.Done;
        await processor.StopProcessingAsync();
        Check.Equal([0], counts);
        Check.Equal(0, (await PeekAll(other)).Count);
    }

    [Scenario("S30", "a message is completed on another connection by its lock token")]
    public async Task AMessageIsCompletedOnAnotherConnection()
    {
        await SendNumbered("s30", 1);
        var other = Connect();
        var message = await ReceiveOne(other.CreateReceiver("s30"));
        await other.DisposeAsync();
        var receiver = Client.CreateReceiver("s30");
        await receiver.CompleteMessageAsync(message);
        await ReceiveNothing(receiver);
        Check.Equal(0, (await PeekAll(receiver)).Count);
    }

    [Scenario("S37", "messages are completed in reverse order")]
    public async Task MessagesAreCompletedInReverseOrder()
    {
        await SendNumbered("s37", 20);
        var receiver = Client.CreateReceiver("s37");
        await CompleteAll(receiver, (await Receive(receiver, 20)).AsEnumerable().Reverse());
        Check.Equal(0, (await PeekAll(receiver)).Count);
    }
}

namespace Interop;

class Stamping : Scenarios
{
    [Scenario("S15", "numbers are given in the order sent")]
    public async Task NumbersAreGivenInTheOrderSent()
    {
        var sender = Client.CreateSender("s15");
        foreach (var message in Numbered(3))
        {
            await sender.SendMessageAsync(message);
        }
        await sender.SendMessagesAsync([Message(4), Message(5), Message(6)]);
        await sender.SendMessageAsync(Message(7));
        var messages = await Receive(Client.CreateReceiver("s15"), 7);
        Check.Equal(Texts(1, 7), Bodies(messages));
        Check.Equal(Range(1, 7), Numbers(messages));
    }

    [Scenario("S16", "the enqueued time is that of the send and stays")]
    public async Task TheEnqueuedTimeIsThatOfTheSend()
    {
        var before = Now;
        await Send("s16", Message(1));
        var after = Now;
        var receiver = Client.CreateReceiver("s16");
        var first = await ReceiveOne(receiver);
        Check.True(first.EnqueuedTime >= before - Seconds(1) && first.EnqueuedTime <= after + Seconds(1),
            $"{first.EnqueuedTime:O} is not between {before:O} and {after:O}");
        await receiver.AbandonMessageAsync(first);
        var second = await ReceiveOne(receiver);
        Check.Equal(first.EnqueuedTime, second.EnqueuedTime);
        Check.Equal(first.SequenceNumber, second.SequenceNumber);
    }

    [Scenario("S17", "a message tells its number, times, lock and count")]
    public async Task AMessageTellsItsNumberTimesLockAndCount()
    {
        await Send("s17", new ServiceBusMessage("1") { TimeToLive = TimeSpan.FromMinutes(10) });
        var message = await ReceiveOne(Client.CreateReceiver("s17"));
        Near(Now + Seconds(30), message.LockedUntil, Seconds(3));
        Near(Now, message.EnqueuedTime, Seconds(3));
        Check.Equal(1, message.SequenceNumber);
        Check.Equal(0, Count(message));
        Check.Equal(ServiceBusMessageState.Active, message.State);
        Check.True(Guid.Parse(message.LockToken) != Guid.Empty, message.LockToken);
        Check.Equal(TimeSpan.FromMinutes(10), message.TimeToLive);
        Check.Equal(message.EnqueuedTime + TimeSpan.FromMinutes(10), message.ExpiresAt);
    }
}

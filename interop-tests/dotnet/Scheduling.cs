namespace Interop;

class Scheduling : Scenarios
{
    [Scenario("S45", "a scheduled message arrives at its time under a new number")]
    public async Task AScheduledMessageArrivesAtItsTime()
    {
        var receiver = Client.CreateReceiver("s45");
        var sender = Client.CreateSender("s45");
        await ReceiveNothing(receiver);
        var time = In(Seconds(3));
        Check.Equal(1, await sender.ScheduleMessageAsync(Message("due"), time));
        await ReceiveNothing(receiver);
        var message = await ReceiveOne(receiver, Seconds(6));
        Check.True(Now >= time, "before its time");
        Check.Equal("due", message.Body.ToString());
        Check.Equal(2, message.SequenceNumber);
        Check.True(message.EnqueuedTime >= time, $"enqueued at {message.EnqueuedTime:O}, scheduled for {time:O}");
        Check.Equal(time, message.ScheduledEnqueueTime);
    }

    [Scenario("S46", "ten messages are scheduled in one call")]
    public async Task TenMessagesAreScheduledInOneCall()
    {
        Check.Equal(Range(1, 10), await Client.CreateSender("s46").ScheduleMessagesAsync(Numbered(10), In(Seconds(2))));
        var messages = await Receive(Client.CreateReceiver("s46"), 10);
        Check.Equal(Texts(1, 10), Bodies(messages));
        Check.Equal(Range(11, 20), Numbers(messages));
    }

    [Scenario("S47", "a message may be scheduled by a send")]
    public async Task AMessageMayBeScheduledByASend()
    {
        var sender = Client.CreateSender("s47");
        var receiver = Client.CreateReceiver("s47");
        await ReceiveNothing(receiver);
        var time = In(Seconds(4));
        await sender.SendMessageAsync(new ServiceBusMessage("1") { ScheduledEnqueueTime = time });
        await sender.SendMessagesAsync([new ServiceBusMessage("2") { ScheduledEnqueueTime = time },
            Message("at once")]);
        Check.Equal("at once", (await ReceiveOne(receiver)).Body.ToString());
        await ReceiveNothing(receiver);
        Check.Equal(Texts(1, 2), Bodies(await Receive(receiver, 2)));
        Check.True(Now >= time, "before their time");
    }

    [Scenario("S48", "a scheduled message can be peeked")]
    public async Task AScheduledMessageCanBePeeked()
    {
        var time = In(TimeSpan.FromHours(1));
        var number = await Client.CreateSender("s48").ScheduleMessageAsync(Message(1), time);
        var message = await Client.CreateReceiver("s48").PeekMessageAsync();
        Check.Equal(number, message.SequenceNumber);
        Check.Equal(ServiceBusMessageState.Scheduled, message.State);
        Check.Equal(time, message.ScheduledEnqueueTime);
    }

    [Scenario("S49", "cancelled messages never arrive")]
    public async Task CancelledMessagesNeverArrive()
    {
        var sender = Client.CreateSender("s49");
        var receiver = Client.CreateReceiver("s49");
        var numbers = await sender.ScheduleMessagesAsync(Numbered(3), In(Seconds(3)));
        await sender.CancelScheduledMessageAsync(numbers[0]);
        await sender.CancelScheduledMessagesAsync(numbers.Skip(1));
        Check.Equal(0, (await PeekAll(receiver)).Count);
        await ReceiveNothing(receiver, Seconds(4));
    }

    [Scenario("S50", "what has become active cannot be cancelled")]
    public async Task WhatHasBecomeActiveCannotBeCancelled()
    {
        var sender = Client.CreateSender("s50");
        var number = await sender.ScheduleMessageAsync(Message(1), In(Seconds(1)));
        var receiver = Client.CreateReceiver("s50");
        await receiver.AbandonMessageAsync(await ReceiveOne(receiver));
        await Fails(ServiceBusFailureReason.MessageNotFound, () => sender.CancelScheduledMessageAsync(number));
        Check.Equal("1", (await ReceiveOne(receiver)).Body.ToString());
    }

    [Scenario("S51", "a time in the past is now")]
    public async Task ATimeInThePastIsNow()
    {
        Check.Equal(1, await Client.CreateSender("s51").ScheduleMessageAsync(Message(1), In(TimeSpan.FromMinutes(-1))));
        Check.Equal("1", (await ReceiveOne(Client.CreateReceiver("s51"), Seconds(3))).Body.ToString());
    }

    [Scenario("S52", "a cancel of what is not there fails and touches nothing")]
    public async Task ACancelOfWhatIsNotThereFails()
    {
        var sender = Client.CreateSender("s52");
        var numbers = await sender.ScheduleMessagesAsync(Numbered(2), In(TimeSpan.FromHours(1)));
        await Fails(ServiceBusFailureReason.MessageNotFound, () => sender.CancelScheduledMessageAsync(4711));
        await sender.CancelScheduledMessageAsync(numbers[0]);
        await Fails(ServiceBusFailureReason.MessageNotFound, () => sender.CancelScheduledMessageAsync(numbers[0]));
        await Fails(ServiceBusFailureReason.MessageNotFound, () => sender.CancelScheduledMessagesAsync(numbers));
        Check.Equal(["2"], Bodies(await PeekAll(Client.CreateReceiver("s52"))));
    }
}

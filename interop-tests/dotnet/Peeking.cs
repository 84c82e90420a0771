namespace Interop;

class Peeking : Scenarios
{
    [Scenario("S60", "a peek sees every state and changes none")]
    public async Task APeekSeesEveryStateAndChangesNone()
    {
        var sender = Client.CreateSender("s60");
        await sender.SendMessagesAsync(Numbered(3));
        await sender.ScheduleMessageAsync(Message(4), In(TimeSpan.FromHours(1)));
        var receiver = Client.CreateReceiver("s60");
        await receiver.DeferMessageAsync((await Receive(receiver, 2))[1]);
        for (var round = 0; round < 2; round += 1)
        {
            var seen = await PeekAll(receiver);
            Check.Equal(Range(1, 4), Numbers(seen));
            Check.Equal(Texts(1, 4), Bodies(seen));
            Check.Equal(
                [ServiceBusMessageState.Active, ServiceBusMessageState.Deferred, ServiceBusMessageState.Active,
                    ServiceBusMessageState.Scheduled],
                seen.Select(each => each.State));
            // The SDK shows no lock token as an empty one.
            Check.Equal(Enumerable.Repeat(Guid.Empty, 4), seen.Select(each => Guid.Parse(each.LockToken)));
        }
        var active = await ReceiveOne(receiver);
        Check.Equal("3", active.Body.ToString());
        Check.Equal(0, Count(active));
    }

    [Scenario("S61", "a peek goes on where the last one ended")]
    public async Task APeekGoesOnWhereTheLastOneEnded()
    {
        await SendNumbered("s61", 10);
        var receiver = Client.CreateReceiver("s61");
        Check.Equal(Range(4, 6), Numbers(await receiver.PeekMessagesAsync(3, 4)));
        Check.Equal(Range(7, 9), Numbers(await receiver.PeekMessagesAsync(3)));
        Check.Equal(10, (await receiver.PeekMessageAsync()).SequenceNumber);
        Check.Equal(0, (await receiver.PeekMessagesAsync(3)).Count);
    }

    [Scenario("S62", "a peek into an empty queue finds nothing")]
    public async Task APeekIntoAnEmptyQueueFindsNothing()
    {
        var receiver = Client.CreateReceiver("s62");
        Check.Equal(0, (await receiver.PeekMessagesAsync(10)).Count);
        Check.Equal(null, await receiver.PeekMessageAsync());
    }

    [Scenario("S63", "600 messages are peeked page by page")]
    public async Task SixHundredMessagesArePeekedPageByPage()
    {
        var filler = new string('x', 1_000);
        var sender = Client.CreateSender("s63");
        foreach (var chunk in Enumerable.Range(1, 600).Chunk(100))
        {
            await sender.SendMessagesAsync(chunk.Select(each => Message(each + filler)));
        }
        var seen = await PeekAll(Client.CreateReceiver("s63"));
        Check.Equal(Range(1, 600), Numbers(seen));
        Check.Equal(Texts(1, 600).Select(each => each + filler), Bodies(seen));
    }
}

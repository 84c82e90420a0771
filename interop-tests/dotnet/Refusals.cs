namespace Interop;

class Refusals : MoreScenarios
{
    [Scenario("S327", "what is settled cannot be settled again")]
    public async Task WhatIsSettledCannotBeSettledAgain()
    {
        await SendNumbered("s327", 2);
        var receiver = Client.CreateReceiver("s327");
        var messages = await Receive(receiver, 2);
        var first = messages[0];
        await receiver.CompleteMessageAsync(first);
        foreach (var settlement in new Func<Task>[]
        {
            () => receiver.CompleteMessageAsync(first), () => receiver.AbandonMessageAsync(first),
            () => receiver.DeferMessageAsync(first), () => receiver.DeadLetterMessageAsync(first),
        })
        {
            await Fails(ServiceBusFailureReason.MessageLockLost, settlement);
        }
        await receiver.AbandonMessageAsync(messages[1]);
        await Fails(ServiceBusFailureReason.MessageLockLost, () => receiver.CompleteMessageAsync(messages[1]));
        var again = await ReceiveOne(receiver);
        Check.Equal("2", again.Body.ToString());
        Check.Equal(1, Count(again));
        await receiver.CompleteMessageAsync(again);
        Check.Equal([], Bodies(await PeekAll(receiver)));
        Check.Equal([], Bodies(await PeekAll(Client.CreateReceiver("s327", DeadLetters))));
    }

    [Scenario("S332", "a message session that others may have too is refused")]
    public async Task AMessageSessionThatOthersMayHaveTooIsRefused()
    {
        var options = new ServiceBusSessionReceiverOptions { EnableNonExclusiveSession = true };
        var failure = await Refuses("", () => Client.AcceptSessionAsync("s332", "x", options));
        Check.Equal(typeof(NotSupportedException), failure.GetType());
        // A session of its own is granted.
        await Send("s332", InSession("x", 1));
        Check.Equal("1", (await ReceiveOne(await Client.AcceptSessionAsync("s332", "x"))).Body.ToString());
    }
}

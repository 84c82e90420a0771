namespace Interop;

class Expiring : Scenarios
{
    static ServiceBusMessage Lasting(object body, TimeSpan time) => new($"{body}") { TimeToLive = time };

    [Scenario("S41", "an expired message is gone")]
    public async Task AnExpiredMessageIsGone()
    {
        await Send("s41", Lasting("short", Seconds(1)), Message("long"));
        var dead = Client.CreateReceiver("s41", DeadLetters);
        await ReceiveNothing(dead, Seconds(2));
        Check.Equal("long", (await ReceiveOne(Client.CreateReceiver("s41"))).Body.ToString());
        Check.Equal(0, (await PeekAll(dead)).Count);
    }

    [Scenario("S42", "an expired message is dead-lettered where the queue says so")]
    public async Task AnExpiredMessageIsDeadLettered()
    {
        await Send("s42", Lasting(1, Seconds(1)));
        var dead = await ReceiveOne(Client.CreateReceiver("s42", DeadLetters));
        Check.Equal("TTLExpiredException", dead.DeadLetterReason);
        Check.Equal("The message expired and was dead lettered.", dead.DeadLetterErrorDescription);
    }

    [Scenario("S43", "the queue's time to live bounds the messages'")]
    public async Task TheQueuesTimeToLiveBoundsTheMessages()
    {
        // On a busy machine two seconds can be over before the receive: a queue of its own has ten.
        await CreateQueue("s43-longer", options =>
        {
            options.DefaultMessageTimeToLive = Seconds(10);
            options.DeadLetteringOnMessageExpiration = true;
        });
        await Send("s43-longer", Message(1), Lasting(2, TimeSpan.FromHours(1)));
        var receiver = Client.CreateReceiver("s43-longer");
        foreach (var message in await Receive(receiver, 2))
        {
            Check.Equal(Seconds(10), message.TimeToLive);
            await receiver.AbandonMessageAsync(message);
        }
        Check.Equal(Texts(1, 2), Bodies(await Receive(Client.CreateReceiver("s43-longer", DeadLetters), 2)));
    }

    [Scenario("S44", "a message may expire while it is locked")]
    public async Task AMessageMayExpireWhileItIsLocked()
    {
        var receiver = Client.CreateReceiver("s44");
        // The link is open before the message begins to expire.
        var receiving = ReceiveOne(receiver);
        await Send("s44", Lasting(1, Seconds(1)));
        var message = await receiving;
        await ReceiveNothing(receiver, Seconds(2));
        await receiver.CompleteMessageAsync(message);
    }
}

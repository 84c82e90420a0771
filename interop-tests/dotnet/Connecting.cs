namespace Interop;

class Connecting : Scenarios
{
    [Scenario("S01", "the emulator's connection string is enough")]
    public async Task TheEmulatorsConnectionStringIsEnough()
    {
        await Send("s01", new ServiceBusMessage("hello") { MessageId = "first" });
        var receiver = Client.CreateReceiver("s01");
        var message = await ReceiveOne(receiver);
        Check.Equal("hello", message.Body.ToString());
        Check.Equal("first", message.MessageId);
        await receiver.CompleteMessageAsync(message);
        await ReceiveNothing(receiver);
    }

    [Scenario("S02", "an unknown queue is not found")]
    public async Task AnUnknownQueueIsNotFound()
    {
        const string text = "The messaging entity";
        await Fails(ServiceBusFailureReason.MessagingEntityNotFound, () => Send("no-such-queue", Message(1)), text);
        var receiver = Client.CreateReceiver("no-such-queue");
        await Fails(ServiceBusFailureReason.MessagingEntityNotFound, () => receiver.ReceiveMessageAsync(Seconds(5)),
            text);
    }

    [Scenario("S03", "names of queues do not depend on case")]
    public async Task NamesOfQueuesDoNotDependOnCase()
    {
        await Send("S03", Message("hello"));
        Check.Equal("hello", (await ReceiveOne(Client.CreateReceiver("s03"))).Body.ToString());
    }

    [Scenario("S04", "many links share a connection")]
    public async Task ManyLinksShareAConnection()
    {
        string[] queues = ["s04", "s04", "s04b"];
        var senders = queues.Select(queue => Client.CreateSender(queue)).ToList();
        var receivers = queues.Select(queue => Client.CreateReceiver(queue)).ToList();
        foreach (var sender in senders)
        {
            await sender.SendMessageAsync(Message(1));
        }
        foreach (var receiver in receivers)
        {
            await receiver.CompleteMessageAsync(await ReceiveOne(receiver));
        }
        await senders[0].CloseAsync();
        await receivers[0].CloseAsync();
        foreach (var each in new[] { 1, 2 })
        {
            await senders[each].SendMessageAsync(Message(2));
            Check.Equal("2", (await ReceiveOne(receivers[each])).Body.ToString());
        }
    }
}

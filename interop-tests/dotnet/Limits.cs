namespace Interop;

class Limits : Scenarios
{
    Task SendingFails(string queue) =>
        Fails(ServiceBusFailureReason.MessagingEntityDisabled,
            () => Client.CreateSender(queue).SendMessageAsync(Message(1)));

    Task ReceivingFails(string queue) =>
        Fails(ServiceBusFailureReason.MessagingEntityDisabled,
            () => Client.CreateReceiver(queue).ReceiveMessageAsync(Seconds(5)));

    [Scenario("S64", "a queue that takes nothing still gives")]
    public async Task AQueueThatTakesNothingStillGives()
    {
        await SendingFails("s64");
        await ReceiveNothing(Client.CreateReceiver("s64"));
    }

    [Scenario("S65", "a queue that gives nothing still takes")]
    public async Task AQueueThatGivesNothingStillTakes()
    {
        await Send("s65", Message(1));
        await ReceivingFails("s65");
    }

    [Scenario("S66", "a disabled queue neither takes nor gives")]
    public async Task ADisabledQueueNeitherTakesNorGives()
    {
        await SendingFails("s66");
        await ReceivingFails("s66");
    }

    [Scenario("S67", "a full queue refuses and takes again when there is room")]
    public async Task AFullQueueRefusesAndTakesAgain()
    {
        var sender = Client.CreateSender("s67");
        ServiceBusMessage Filling(int number) => new(new string('x', 100 * 1024)) { Subject = $"{number}" };
        static IEnumerable<string> Subjects(IEnumerable<ServiceBusReceivedMessage> messages) =>
            messages.Select(each => each.Subject);
        var accepted = 0;
        ServiceBusException? refusal = null;
        while (accepted < 30 && refusal == null)
        {
            try
            {
                await sender.SendMessageAsync(Filling(accepted + 1));
                accepted += 1;
            }
            catch (ServiceBusException error)
            {
                refusal = error;
            }
        }
        Check.Equal(ServiceBusFailureReason.QuotaExceeded, refusal?.Reason);
        var receiver = Client.CreateReceiver("s67");
        Check.Equal(Texts(1, accepted), Subjects(await PeekAll(receiver)));
        await CompleteAll(receiver, await Receive(receiver, 5));
        await sender.SendMessageAsync(Filling(accepted + 1));
        Check.Equal(Texts(6, accepted + 1), Subjects(await PeekAll(receiver)));
    }
}

namespace Interop;

class Namespaces : Scenarios
{
    [Scenario("S251", "a namespace is the host that a client names")]
    public async Task ANamespaceIsTheHostThatAClientNames()
    {
        // The client connects to the custom endpoint, and names the connection string's host in its open.
        var options = Options();
        options.CustomEndpointAddress = new Uri($"sb://localhost:{Broker.AmqpPort}");
        var other = Connect(Broker.ConnectionString.Replace("localhost", "other.example"), options);
        await other.CreateSender("s251").SendMessageAsync(Message("other"));
        await Client.CreateSender("s251").SendMessageAsync(Message("first"));
        await other.CreateSender("s251only").SendMessageAsync(Message("only"));
        foreach (var (client, body) in new[] { (Client, "first"), (other, "other") })
        {
            var messages = await PeekAll(client.CreateReceiver("s251"));
            Check.Equal([body], Bodies(messages));
            Check.Equal([1L], Numbers(messages));
            Check.Equal(body, (await ReceiveOne(client.CreateReceiver("s251"))).Body.ToString());
        }
        await Fails(ServiceBusFailureReason.MessagingEntityNotFound,
            () => Client.CreateSender("s251only").SendMessageAsync(Message(1)));
    }
}

using Azure.Messaging.ServiceBus;
using NUnit.Framework;

namespace Example.OfNUnit;

[SetUpFixture]
public class JitneySetUp
{
    public static Jitney Jitney { get; private set; } = null!;

    [OneTimeSetUp]
    public async Task Start() => Jitney = await Jitney.StartAsync();

    [OneTimeTearDown]
    public async Task Stop() => await Jitney.DisposeAsync();
}

public class OrdersTests
{
    [Test]
    public async Task AnOrderIsReceived()
    {
        await using var space = await JitneySetUp.Jitney.CreateNamespaceAsync();
        var options = new ServiceBusClientOptions { CustomEndpointAddress = space.Endpoint };
        await using var client = new ServiceBusClient(space.ConnectionString, options);
        await client.CreateSender("orders").SendMessageAsync(new ServiceBusMessage("hello"));
        var message = await client.CreateReceiver("orders").ReceiveMessageAsync(TimeSpan.FromSeconds(10));
        Assert.That(message.Body.ToString(), Is.EqualTo("hello"));
    }
}

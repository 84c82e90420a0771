// xunit v3. In v2, InitializeAsync and DisposeAsync return Task.
using Azure.Messaging.ServiceBus;
using Xunit;

namespace Example.OfXunit;

public sealed class JitneyFixture : IAsyncLifetime
{
    public Jitney Jitney { get; private set; } = null!;

    public async ValueTask InitializeAsync() => Jitney = await Jitney.StartAsync();

    public ValueTask DisposeAsync() => Jitney.DisposeAsync();
}

[CollectionDefinition("jitney")]
public class JitneyCollection : ICollectionFixture<JitneyFixture>;

[Collection("jitney")]
public class OrdersTests(JitneyFixture fixture)
{
    [Fact]
    public async Task AnOrderIsReceived()
    {
        await using var space = await fixture.Jitney.CreateNamespaceAsync();
        var options = new ServiceBusClientOptions { CustomEndpointAddress = space.Endpoint };
        await using var client = new ServiceBusClient(space.ConnectionString, options);
        await client.CreateSender("orders").SendMessageAsync(new ServiceBusMessage("hello"));
        var receiver = client.CreateReceiver("orders");
        var message = await receiver.ReceiveMessageAsync(TimeSpan.FromSeconds(10));
        Assert.Equal("hello", message.Body.ToString());
        await receiver.CompleteMessageAsync(message);
    }

    [Fact]
    public async Task AnOrderStaysInTheQueue()
    {
        await using var space = await fixture.Jitney.CreateNamespaceAsync();
        var options = new ServiceBusClientOptions { CustomEndpointAddress = space.Endpoint };
        await using var client = new ServiceBusClient(space.ConnectionString, options);
        await client.CreateSender("orders").SendMessageAsync(new ServiceBusMessage("stays"));
        var messages = await client.CreateReceiver("orders").PeekMessagesAsync(10);
        Assert.Equal(["stays"], messages.Select(message => message.Body.ToString()));
    }
}

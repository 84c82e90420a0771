using Azure.Messaging.ServiceBus;
using Microsoft.VisualStudio.TestTools.UnitTesting;

namespace Example.OfMSTest;

[TestClass]
public class JitneyAssembly
{
    public static Jitney Jitney { get; private set; } = null!;

    [AssemblyInitialize]
    public static async Task Start(TestContext context) => Jitney = await Jitney.StartAsync();

    [AssemblyCleanup]
    public static async Task Stop() => await Jitney.DisposeAsync();
}

[TestClass]
public class OrdersTests
{
    [TestMethod]
    public async Task AnOrderIsReceived()
    {
        await using var space = await JitneyAssembly.Jitney.CreateNamespaceAsync();
        var options = new ServiceBusClientOptions { CustomEndpointAddress = space.Endpoint };
        await using var client = new ServiceBusClient(space.ConnectionString, options);
        await client.CreateSender("orders").SendMessageAsync(new ServiceBusMessage("hello"));
        var message = await client.CreateReceiver("orders").ReceiveMessageAsync(TimeSpan.FromSeconds(10));
        Assert.AreEqual("hello", message.Body.ToString());
    }
}

using Microsoft.Extensions.Azure;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace Interop;

/// <summary>
/// Clients by dependency injection (Microsoft.Extensions.Azure), and a worker that a host starts and stops.
/// </summary>
class Hosting : MoreScenarios
{
    /// <summary>Takes orders of a queue, and sends each on.</summary>
    sealed class Worker(ServiceBusClient client, ServiceBusSender done, Work work) : BackgroundService
    {
        protected override async Task ExecuteAsync(CancellationToken stopping)
        {
            await using var processor = client.CreateProcessor("s615",
                new ServiceBusProcessorOptions { MaxConcurrentCalls = 4 });
            processor.ProcessMessageAsync += async args =>
            {
                await done.SendMessageAsync(new ServiceBusMessage($"done {args.Message.Body}"), CancellationToken.None);
                work.Add(args.Message);
            };
            processor.ProcessErrorAsync += work.Failed;
            await processor.StartProcessingAsync(stopping);
            try
            {
                await Task.Delay(Timeout.Infinite, stopping);
            }
            catch (OperationCanceledException)
            {
                await processor.StopProcessingAsync(CancellationToken.None);
            }
        }
    }

    [Scenario("S615", "a hosted worker has its clients by dependency injection")]
    public async Task AHostedWorkerHasItsClientsByDependencyInjection()
    {
        await CreateQueue("s615");
        await CreateQueue("s615b");
        var builder = Host.CreateEmptyApplicationBuilder(null);
        builder.Logging.ClearProviders();
        builder.Configuration.AddInMemoryCollection(new Dictionary<string, string?>
        {
            ["ServiceBus:ConnectionString"] = Broker.ConnectionString, ["ServiceBus:RetryOptions:MaxRetries"] = "2",
        });
        builder.Services.AddAzureClients(clients =>
        {
            clients.AddServiceBusClient(builder.Configuration.GetSection("ServiceBus"));
            clients.AddServiceBusClient(Secured.ConnectionString).WithName("secured");
            clients.AddServiceBusAdministrationClient(Broker.ConnectionString);
            clients.AddClient<ServiceBusSender, ServiceBusClientOptions>((_, _, services) =>
                services.GetRequiredService<ServiceBusClient>().CreateSender("s615b"));
        });
        builder.Services.AddSingleton<Work>();
        builder.Services.AddHostedService<Worker>();
        using var host = builder.Build();
        var administrator = host.Services.GetRequiredService<ServiceBusAdministrationClient>();
        Check.True(await administrator.QueueExistsAsync("s615"), "no queue");
        var named = host.Services.GetRequiredService<IAzureClientFactory<ServiceBusClient>>().CreateClient("secured");
        Check.Equal(Secured.Address, named.FullyQualifiedNamespace);

        var work = host.Services.GetRequiredService<Work>();
        await host.StartAsync();
        await SendNumbered("s615", 50);
        await work.Until(50);
        await BecomesEmpty(Client.CreateReceiver("s615"));
        await host.StopAsync();
        Check.Equal(Sorted(Texts(1, 50).Select(each => $"done {each}")),
            Sorted(Bodies(await PeekAll(Client.CreateReceiver("s615b")))));
        Check.Equal([], work.Errors);
        // What comes after the worker's end stays.
        await Send("s615", Message("late"));
        var late = await ReceiveOne(Client.CreateReceiver("s615"));
        Check.Equal("late 0", $"{late.Body} {Count(late)}");
    }
}

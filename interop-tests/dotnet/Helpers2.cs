using System.Runtime.CompilerServices;
using System.Text;

namespace Interop;

/// <summary>Further helpers of scenarios.</summary>
abstract class MoreScenarios : Scenarios
{
    protected static List<T> Sorted<T>(IEnumerable<T> values) => [.. values.Order()];

    /// <summary>Waits until a queue or subscription has no message at all.</summary>
    protected static Task BecomesEmpty(ServiceBusReceiver looking) =>
        Check.Eventually(async () => (await PeekAll(looking)).Count == 0, $"{looking.EntityPath} is empty");

    /// <summary>What a call fails with, or null.</summary>
    protected static async Task<Exception?> FailureOf(Func<Task> call)
    {
        try
        {
            await call();
            return null;
        }
        catch (Exception failure) when (failure is not CheckException)
        {
            return failure;
        }
    }

    /// <summary>
    /// Checks that a receiver fails. The receive that waits while the link ends has no message; the next one says why.
    /// </summary>
    protected static async Task ReceivingFails<T>(ServiceBusReceiver receiver,
        ServiceBusFailureReason? reason = null) where T : Exception
    {
        var end = Now + Deadline;
        Exception? failure;
        while ((failure = await FailureOf(() => ReceiveNothing(receiver, Seconds(5)))) == null)
        {
            Check.True(Now < end, "receiving does not fail");
        }
        Check.True(failure is T && (reason == null || (failure as ServiceBusException)?.Reason == reason),
            $"{failure}");
    }

    protected static async Task<List<T>> All<T>(IAsyncEnumerable<T> values)
    {
        var all = new List<T>();
        await foreach (var value in values)
        {
            all.Add(value);
        }
        return all;
    }

    protected static string Text(byte[] bytes) => Encoding.UTF8.GetString(bytes);
}

/// <summary>Scenarios of the secured broker, which make their entities themselves.</summary>
abstract class SecuredScenarios : MoreScenarios
{
    protected static ServiceBusAdministrationClient Administrator => Secured.Administration;

    /// <summary>The SDK tries again what is unauthorized, unless it is told not to.</summary>
    protected static ServiceBusClientOptions Once(ServiceBusTransportType transport = ServiceBusTransportType.AmqpTcp)
    {
        var options = Options();
        options.TransportType = transport;
        options.RetryOptions.MaxRetries = 0;
        return options;
    }

    /// <summary>A connection with a key of the namespace, or of an entity.</summary>
    protected ServiceBusClient WithKey(string name, string key, string? entity = null) =>
        Connect(Secured.With(name, key) + (entity == null ? "" : $";EntityPath={entity}"), Once());

    protected ServiceBusClient WithRoot() => WithKey(Secured.Root, Secured.RootKey);

    protected static ServiceBusClientOptions OverWebSockets() => Once(ServiceBusTransportType.AmqpWebSockets);

    protected static async Task DeniesSending(ServiceBusClient client, string queue) =>
        await Check.Throws<UnauthorizedAccessException>(() =>
            client.CreateSender(queue).SendMessageAsync(Message("denied")));

    protected static async Task DeniesReceiving(ServiceBusReceiver receiver)
    {
        await Check.Throws<UnauthorizedAccessException>(() => receiver.ReceiveMessageAsync(Seconds(5)));
        await Check.Throws<UnauthorizedAccessException>(() => receiver.PeekMessageAsync());
    }

    /// <summary>Neither the queue nor its management node can be used.</summary>
    protected static async Task DeniesAll(ServiceBusClient client, string queue)
    {
        await DeniesSending(client, queue);
        await DeniesReceiving(client.CreateReceiver(queue));
    }

    /// <summary>
    /// Checks that administration answers 400, 401, 404 or 409, as the SDK's error of its own, with this text.
    /// </summary>
    protected static async Task Denies(int status, string text, Func<Task> call)
    {
        var failure = await FailureOf(call);
        var told = failure switch
        {
            ArgumentException => 400,
            UnauthorizedAccessException => 401,
            ServiceBusException { Reason: ServiceBusFailureReason.MessagingEntityNotFound } => 404,
            ServiceBusException { Reason: ServiceBusFailureReason.MessagingEntityAlreadyExists } => 409,
            _ => 0,
        };
        Check.True(told == status && failure!.Message.Contains(text),
            $"wanted {status} with \"{text}\", got {failure?.ToString() ?? "success"}");
        Check.Equal(status, (failure!.InnerException as Azure.RequestFailedException)?.Status);
    }
}

static class Threads
{
    /// <summary>
    /// Each end of a TransactionScope holds a thread until the broker has answered, and many scenarios run at once.
    /// </summary>
    [ModuleInitializer]
    internal static void AreEnough() => ThreadPool.SetMinThreads(64, 64);
}

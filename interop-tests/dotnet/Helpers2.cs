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

static class Threads
{
    /// <summary>Each end of a TransactionScope holds a thread until the broker has answered, and many scenarios run at once.</summary>
    [ModuleInitializer]
    internal static void AreEnough() => ThreadPool.SetMinThreads(64, 64);
}

using System.Collections.Concurrent;

namespace Interop;

/// <summary>What a processor has been given, and was told of.</summary>
sealed class Work
{
    readonly ConcurrentQueue<ServiceBusReceivedMessage> messages = new();
    readonly ConcurrentQueue<ProcessErrorEventArgs> errors = new();
    int busy;
    int mostBusy;

    public List<string> Bodies => [.. messages.Select(each => each.Body.ToString())];

    public int Count => messages.Count;

    public List<Exception> Errors => [.. errors.Select(each => each.Exception)];

    /// <summary>Where each error was, and what it was.</summary>
    public List<string> Complaints => [.. errors.Select(each => $"{each.ErrorSource}: {each.Exception.Message}")];

    public int MostAtOnce => mostBusy;

    public void Add(ServiceBusReceivedMessage message) => messages.Enqueue(message);

    public Task Take(ProcessMessageEventArgs args)
    {
        Add(args.Message);
        return Task.CompletedTask;
    }

    public Task Failed(ProcessErrorEventArgs args)
    {
        errors.Enqueue(args);
        return Task.CompletedTask;
    }

    /// <summary>Counts those at work, and waits until there have been so many at once, or for a time.</summary>
    public async Task WorkTogether(int count, TimeSpan atMost)
    {
        Most(Interlocked.Increment(ref busy));
        var end = DateTimeOffset.UtcNow + atMost;
        while (Volatile.Read(ref mostBusy) < count && DateTimeOffset.UtcNow < end)
        {
            await Task.Delay(20);
        }
        Interlocked.Decrement(ref busy);
    }

    void Most(int now)
    {
        for (var most = mostBusy; now > most; most = mostBusy)
        {
            Interlocked.CompareExchange(ref mostBusy, now, most);
        }
    }

    /// <summary>Waits until so many different messages have come.</summary>
    public async Task Until(int count, TimeSpan? deadline = null)
    {
        var end = DateTimeOffset.UtcNow + (deadline ?? Scenarios.Deadline);
        while (Bodies.Distinct().Count() < count)
        {
            Check.True(DateTimeOffset.UtcNow < end,
                $"not {count} messages but {messages.Count}; {Errors.LastOrDefault()}");
            await Task.Delay(50);
        }
    }
}

/// <summary>A handler that is waited for, and fails as it does.</summary>
sealed class Handling
{
    readonly TaskCompletionSource done = new();

    public async Task Run(Func<Task> handle)
    {
        try
        {
            await handle();
            done.TrySetResult();
        }
        catch (Exception error)
        {
            done.TrySetException(error);
        }
    }

    public Task Failed(ProcessErrorEventArgs args)
    {
        done.TrySetException(args.Exception);
        return Task.CompletedTask;
    }

    public Task Done => done.Task.WaitAsync(Scenarios.Deadline);
}

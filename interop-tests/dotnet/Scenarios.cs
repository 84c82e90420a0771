using System.Diagnostics;
using Azure;

namespace Interop;

/// <summary>
/// What every scenario needs: a connection of its own, receives with a deadline, errors by their reason.
/// </summary>
abstract class Scenarios : IAsyncDisposable
{
    public static readonly TimeSpan Deadline = Seconds(30);

    readonly Stack<IAsyncDisposable> opened = new();
    ServiceBusClient? client;

    /// <summary>The scenario's own connection to the suite's broker.</summary>
    protected ServiceBusClient Client => client ??= Connect();

    protected static ServiceBusAdministrationClient Administration => Broker.Administration;

    /// <summary>Another connection, which ends with the scenario.</summary>
    protected ServiceBusClient Connect(string? connectionString = null, ServiceBusClientOptions? options = null) =>
        Own(new ServiceBusClient(connectionString ?? Broker.ConnectionString, options ?? Options()));

    /// <summary>Closes it at the end of the scenario.</summary>
    protected T Own<T>(T what) where T : IAsyncDisposable
    {
        lock (opened)
        {
            opened.Push(what);
        }
        return what;
    }

    /// <summary>Options with waits that end before the scenario does.</summary>
    protected static ServiceBusClientOptions Options(TimeSpan? tryTimeout = null) =>
        new() { RetryOptions = { TryTimeout = tryTimeout ?? Deadline, Delay = Seconds(0.2), MaxDelay = Seconds(2) } };

    public async ValueTask DisposeAsync()
    {
        while (opened.TryPop(out var each))
        {
            await each.DisposeAsync();
        }
    }

    // Entities

    /// <summary>A queue made for this scenario, for one that needs other times than config.json gives it.</summary>
    protected static async Task<string> CreateQueue(string name, Action<CreateQueueOptions>? change = null)
    {
        var options = new CreateQueueOptions(name);
        change?.Invoke(options);
        await Administration.CreateQueueAsync(options);
        return name;
    }

    protected static ServiceBusReceiverOptions DeadLetters => new() { SubQueue = SubQueue.DeadLetter };

    protected static ServiceBusReceiverOptions Destructive =>
        new() { ReceiveMode = ServiceBusReceiveMode.ReceiveAndDelete };

    protected static ServiceBusReceiverOptions Prefetching(int count) => new() { PrefetchCount = count };

    // Sending

    protected static ServiceBusMessage Message(object body) => new(body.ToString());

    protected static ServiceBusMessage InSession(string id, object body) => new(body.ToString()) { SessionId = id };

    /// <summary>A message with one application property.</summary>
    protected static ServiceBusMessage With(string name, object? value) =>
        new($"{value}") { ApplicationProperties = { [name] = value } };

    /// <summary>Messages whose bodies are 1, 2, 3…</summary>
    protected static List<ServiceBusMessage> Numbered(int count) =>
        [.. Enumerable.Range(1, count).Select(each => Message(each))];

    /// <summary>Sends messages with bodies 1, 2, 3… in one batch.</summary>
    protected async Task SendNumbered(string entity, int count)
    {
        await using var sender = Client.CreateSender(entity);
        await sender.SendMessagesAsync(Numbered(count));
    }

    /// <summary>Sends messages one by one.</summary>
    protected async Task Send(string entity, params ServiceBusMessage[] messages)
    {
        await using var sender = Client.CreateSender(entity);
        foreach (var message in messages)
        {
            await sender.SendMessageAsync(message);
        }
    }

    // Receiving

    /// <summary>Receives exactly so many messages, in as many calls as it takes.</summary>
    protected static async Task<List<ServiceBusReceivedMessage>> Receive(ServiceBusReceiver receiver, int count,
        TimeSpan? deadline = null)
    {
        var limit = deadline ?? Deadline;
        var begin = Stopwatch.GetTimestamp();
        var received = new List<ServiceBusReceivedMessage>();
        while (received.Count < count)
        {
            var remaining = limit - Stopwatch.GetElapsedTime(begin);
            Check.True(remaining > TimeSpan.Zero, $"{received.Count} of {count} messages within {limit}");
            received.AddRange(await receiver.ReceiveMessagesAsync(count - received.Count, remaining));
        }
        Check.Equal(count, received.Count);
        return received;
    }

    protected static async Task<ServiceBusReceivedMessage> ReceiveOne(ServiceBusReceiver receiver,
        TimeSpan? deadline = null) =>
        (await Receive(receiver, 1, deadline))[0];

    /// <summary>
    /// Checks that no message arrives for a second, or longer. This is also how a scenario lets time pass.
    /// </summary>
    protected static async Task ReceiveNothing(ServiceBusReceiver receiver, TimeSpan? wait = null)
    {
        var message = await receiver.ReceiveMessageAsync(wait ?? Seconds(1));
        Check.True(message == null, $"received \"{message?.Body}\", number {message?.SequenceNumber}");
    }

    protected static async Task CompleteAll(ServiceBusReceiver receiver,
        IEnumerable<ServiceBusReceivedMessage> messages)
    {
        foreach (var message in messages)
        {
            await receiver.CompleteMessageAsync(message);
        }
    }

    /// <summary>Everything that a peek from the first message sees, page by page.</summary>
    protected static async Task<List<ServiceBusReceivedMessage>> PeekAll(ServiceBusReceiver receiver)
    {
        var seen = new List<ServiceBusReceivedMessage>();
        while (true)
        {
            var page = await receiver.PeekMessagesAsync(100, seen.Count == 0 ? 1 : seen[^1].SequenceNumber + 1);
            if (page.Count == 0)
            {
                return seen;
            }
            seen.AddRange(page);
        }
    }

    /// <summary>
    /// Sends a small and a large message and completes them, and uses the management node; leaves nothing behind.
    /// </summary>
    protected static async Task RoundTrip(ServiceBusClient client, string queue)
    {
        await using var sender = client.CreateSender(queue);
        await using var receiver = client.CreateReceiver(queue);
        foreach (var size in new[] { 1, 200 * 1024 })
        {
            await sender.SendMessageAsync(OfSize(size));
            var message = await ReceiveOne(receiver);
            Check.Equal(Pattern(size), message.Body.ToArray());
            await receiver.CompleteMessageAsync(message);
        }
        await sender.CancelScheduledMessageAsync(await sender.ScheduleMessageAsync(Message("later"),
            In(TimeSpan.FromHours(1))));
        Check.Equal(0, (await PeekAll(receiver)).Count);
    }

    // Reading messages

    protected static List<string> Bodies(IEnumerable<ServiceBusReceivedMessage> messages) =>
        [.. messages.Select(each => each.Body.ToString())];

    protected static List<long> Numbers(IEnumerable<ServiceBusReceivedMessage> messages) =>
        [.. messages.Select(each => each.SequenceNumber)];

    /// <summary>Delivery counts as on the wire: the SDK shows one more.</summary>
    protected static List<int> Counts(IEnumerable<ServiceBusReceivedMessage> messages) => [.. messages.Select(Count)];

    protected static int Count(ServiceBusReceivedMessage message) => message.DeliveryCount - 1;

    protected static List<long> Range(long first, long last) =>
        [.. Enumerable.Range(0, (int)(last - first + 1)).Select(each => first + each)];

    protected static List<string> Texts(int first, int last) =>
        [.. Enumerable.Range(first, last - first + 1).Select(each => $"{each}")];

    protected static byte[] Pattern(int size) =>
        [.. Enumerable.Range(0, size).Select(index => (byte)(index * 31 % 251))];

    protected static ServiceBusMessage OfSize(int size) => new(new BinaryData(Pattern(size)));

    // Errors

    /// <summary>Checks that a call fails with this reason, and with this text somewhere in what is told.</summary>
    protected static async Task<ServiceBusException> Fails(ServiceBusFailureReason reason, Func<Task> call,
        string text = "")
    {
        var failure = await Check.Throws<ServiceBusException>(call);
        Check.True(failure.Reason == reason && failure.ToString().Contains(text),
            $"wanted {reason} \"{text}\", got {failure.Reason}: {failure.Message}");
        return failure;
    }

    /// <summary>Checks that the broker refuses, at once, with this text somewhere in what is told.</summary>
    protected static async Task<Exception> Refuses(string text, Func<Task> call)
    {
        var begin = Stopwatch.GetTimestamp();
        var failure = await Check.Throws<Exception>(call);
        Check.True(failure is not CheckException, failure.Message);
        Check.True(Stopwatch.GetElapsedTime(begin) < Seconds(5), $"refused too late: {failure.Message}");
        Check.True(failure.ToString().Contains(text),
            $"wanted \"{text}\", got {failure.GetType().Name}: {failure.Message}");
        return failure;
    }

    /// <summary>Checks that administration answers with a status and a reason.</summary>
    protected static async Task<ServiceBusException> Denies(int status, ServiceBusFailureReason reason, Func<Task> call,
        string text = "")
    {
        var failure = await Fails(reason, call, text);
        Check.Equal(status, (failure.InnerException as RequestFailedException)?.Status);
        return failure;
    }

    // Time

    protected static TimeSpan Seconds(double count) => TimeSpan.FromSeconds(count);

    protected static DateTimeOffset Now => DateTimeOffset.UtcNow;

    /// <summary>A time in whole milliseconds, as AMQP has them.</summary>
    protected static DateTimeOffset In(TimeSpan duration) =>
        DateTimeOffset.FromUnixTimeMilliseconds((Now + duration).ToUnixTimeMilliseconds());

    protected static void Near(DateTimeOffset wanted, DateTimeOffset time, TimeSpan tolerance) =>
        Check.True((time - wanted).Duration() <= tolerance, $"{time:O} is {(time - wanted).Duration()} off {wanted:O}");
}

/// <summary>What a check found wrong.</summary>
sealed class CheckException(string message) : Exception(message);

static class Check
{
    public static void True(bool holds, string otherwise)
    {
        if (!holds)
        {
            throw new CheckException(otherwise);
        }
    }

    public static void Equal<T>(T wanted, T got) =>
        True(AreEqual(wanted, got), $"wanted {Shown(wanted)}, got {Shown(got)}");

    public static void Equal<T>(IEnumerable<T> wanted, IEnumerable<T> got) =>
        True(AreEqual(wanted, got), $"wanted {Shown(wanted)}, got {Shown(got)}");

    public static void Equal(string? wanted, string? got) => Equal<object>(wanted!, got!);

    public static void Equal(byte[]? wanted, byte[]? got)
    {
        static string Told(byte[]? bytes) => bytes == null ? "none" : $"{bytes.Length} bytes";
        True(wanted == null ? got == null : got != null && wanted.AsSpan().SequenceEqual(got),
            $"wanted {Told(wanted)}, got {Told(got)}, which differ");
    }

    /// <summary>Checks that a call fails, with an exception of this type.</summary>
    public static async Task<T> Throws<T>(Func<Task> call) where T : Exception
    {
        try
        {
            await call();
        }
        catch (T failure)
        {
            return failure;
        }
        throw new CheckException($"no {typeof(T).Name}");
    }

    /// <summary>Waits until a condition holds.</summary>
    public static Task Eventually(Func<Task<bool>> holds, string what, TimeSpan? deadline = null) =>
        Eventually(holds, () => what, deadline);

    /// <summary>Waits until a condition holds; what was not so is told as it is at the end.</summary>
    public static async Task Eventually(Func<Task<bool>> holds, Func<string> what, TimeSpan? deadline = null)
    {
        var begin = Stopwatch.GetTimestamp();
        while (!await holds())
        {
            if (Stopwatch.GetElapsedTime(begin) > (deadline ?? Scenarios.Deadline))
            {
                throw new CheckException($"not within {deadline ?? Scenarios.Deadline}: {what()}");
            }
            await Task.Delay(100);
        }
    }

    /// <summary>By value, and item by item.</summary>
    static bool AreEqual(object? wanted, object? got) => (wanted, got) switch
    {
        (string, _) or (_, string) => Equals(wanted, got),
        (System.Collections.IEnumerable these, System.Collections.IEnumerable those) =>
            these.Cast<object?>().ToList() is var left && those.Cast<object?>().ToList() is var right
            && left.Count == right.Count && left.Zip(right).All(pair => AreEqual(pair.First, pair.Second)),
        _ => Equals(wanted, got),
    };

    static string Shown(object? value) => value switch
    {
        null => "nothing",
        string text => $"\"{text}\"",
        System.Collections.IEnumerable many => $"[{string.Join(", ", many.Cast<object?>().Select(Shown))}]",
        _ => value.ToString() ?? "",
    };
}

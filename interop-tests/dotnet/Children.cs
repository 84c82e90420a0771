#if CHILDREN
using System.Text.Json;

// Programs that scenarios start as processes of their own, by the connection string in JITNEY_CONNECTION_STRING:
//
//     make PREFIX COUNT    for each line of its input makes 4 * COUNT entities, as programs do at their start
//     saga QUEUE           handles sessions with their state, until its input ends

var connectionString = Environment.GetEnvironmentVariable("JITNEY_CONNECTION_STRING")!;
Console.WriteLine("ready");
switch (args)
{
    case ["make", var prefix, var count]:
        while (Console.ReadLine() != null)
        {
            await Make(new ServiceBusAdministrationClient(connectionString), prefix, int.Parse(count));
        }
        break;
    case ["saga", var queue]:
        await Saga(queue);
        break;
    default:
        throw new ArgumentException(string.Join(' ', args));
}

/// <summary>
/// Makes a queue, an error queue, a topic and a subscription that forwards to the queue, for each number.
/// </summary>
static async Task Make(ServiceBusAdministrationClient administrator, string prefix, int count)
{
    var (made, there) = (0, 0);
    // What is not there is made; another process may have been faster.
    async Task Ensure(Func<Task> find, Func<Task> make)
    {
        try
        {
            await find();
            Interlocked.Increment(ref there);
            return;
        }
        catch (ServiceBusException error) when (error.Reason == ServiceBusFailureReason.MessagingEntityNotFound)
        {
        }
        try
        {
            await make();
            Interlocked.Increment(ref made);
        }
        catch (ServiceBusException error) when (error.Reason == ServiceBusFailureReason.MessagingEntityAlreadyExists)
        {
            await find();
            Interlocked.Increment(ref there);
        }
    }
    await Parallel.ForEachAsync(Enumerable.Range(0, count), new ParallelOptions { MaxDegreeOfParallelism = 16 },
        async (n, _) =>
    {
        var (queue, topic) = ($"{prefix}-{n}", $"{prefix}-{n}.topic");
        await Ensure(() => administrator.GetQueueAsync(queue), () => administrator.CreateQueueAsync(queue));
        await Ensure(() => administrator.GetQueueAsync($"{queue}_error"),
            () => administrator.CreateQueueAsync($"{queue}_error"));
        await Ensure(() => administrator.GetTopicAsync(topic), () => administrator.CreateTopicAsync(topic));
        await Ensure(() => administrator.GetSubscriptionAsync(topic, "in"),
            () => administrator.CreateSubscriptionAsync(
                new CreateSubscriptionOptions(topic, "in") { ForwardTo = queue }));
    });
    Console.WriteLine($"made {made}, there {there}");
}

/// <summary>
/// Adds the body of each message to the list in its session's state, unless it is in there, and tells it.
/// </summary>
async Task Saga(string queue)
{
    await using var client = new ServiceBusClient(connectionString);
    await using var processor = client.CreateSessionProcessor(queue, new ServiceBusSessionProcessorOptions
    {
        MaxConcurrentSessions = 4, SessionIdleTimeout = TimeSpan.FromSeconds(0.5),
    });
    processor.ProcessMessageAsync += async args =>
    {
        var state = await args.GetSessionStateAsync();
        var steps = state == null ? [] : JsonSerializer.Deserialize<List<string>>(state.ToString())!;
        var step = args.Message.Body.ToString();
        if (!steps.Contains(step))
        {
            steps.Add(step);
            await args.SetSessionStateAsync(new BinaryData(JsonSerializer.Serialize(steps)));
        }
        Console.WriteLine($"{args.SessionId} {step}");
    };
    processor.ProcessErrorAsync += args =>
    {
        Console.Error.WriteLine($"{args.ErrorSource}: {args.Exception.Message}");
        return Task.CompletedTask;
    };
    await processor.StartProcessingAsync();
    await Console.In.ReadToEndAsync();
    await processor.StopProcessingAsync();
}
#endif

#if PLACE
// Uses a broker in the emulator's place with every connection string that users of the SDK have; prints a line for
// each way of use.

const string key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE";
const string emulator = "UseDevelopmentEmulator=true;";

// Where the SDK (from 7.20.1) goes. With the emulator's flag: to the port of the endpoint, else 5672 for AMQP, and 80
// for WebSockets and administration. Without: to 5671 for AMQP and 443 for WebSockets, always; for administration to
// the port of the endpoint, else 443.
(string Endpoint, string Flag, bool HasAdministration)[] rows =
[
    ("sb://localhost", emulator, true),
    ("sb://localhost/", emulator, true),
    ("sb://localhost:5300", emulator, true),
    ("sb://localhost:5672", emulator, true),
    ("sb://127.0.0.1", emulator, true),
    ("sb://127.0.0.1:5300", emulator, true),
    ("sb://localhost", "", true),
    ("sb://localhost:5671", "", true),
    ("sb://localhost:5300", "", true),
    ("sb://localhost:443", "", true),
    ("sb://127.0.0.1", "", true),
    // Nothing listens there, and only administration goes there.
    ("sb://localhost:15671", "", false),
];

var failures = 0;
foreach (var (endpoint, flag, hasAdministration) in rows)
{
    var text = $"Endpoint={endpoint};{key};{flag}";
    await Try($"{endpoint} {flag} AMQP", () => Messages(text, ServiceBusTransportType.AmqpTcp));
    await Try($"{endpoint} {flag} WebSockets", () => Messages(text, ServiceBusTransportType.AmqpWebSockets));
    await Try($"{endpoint} {flag} administration",
        () => hasAdministration ? Administration(text) : NoAdministration(text));
}
return failures == 0 ? 0 : 1;

async Task Try(string what, Func<Task> use)
{
    try
    {
        await use().WaitAsync(TimeSpan.FromSeconds(30));
        Console.WriteLine($"ok {what}");
    }
    catch (Exception error)
    {
        failures += 1;
        Console.WriteLine($"FAIL {what}: {error.GetType().Name}: {error.Message}");
    }
}

static async Task Messages(string connectionString, ServiceBusTransportType transport)
{
    var options = new ServiceBusClientOptions
    {
        TransportType = transport, RetryOptions = { TryTimeout = TimeSpan.FromSeconds(10), MaxRetries = 0 },
    };
    await using var client = new ServiceBusClient(connectionString, options);
    await using var sender = client.CreateSender("queue.1");
    await using var receiver = client.CreateReceiver("queue.1");
    var id = Guid.NewGuid().ToString();
    await sender.SendMessageAsync(new ServiceBusMessage("hello") { MessageId = id });
    var message = await receiver.ReceiveMessageAsync();
    if (message?.MessageId != id)
    {
        throw new InvalidOperationException($"received {message?.MessageId ?? "nothing"}");
    }
    await receiver.CompleteMessageAsync(message);
    await sender.CancelScheduledMessageAsync(await sender.ScheduleMessageAsync(new ServiceBusMessage("later"),
        DateTimeOffset.Now.AddHours(1)));
}

static ServiceBusAdministrationClient Administrator(string connectionString) =>
    new(connectionString, new ServiceBusAdministrationClientOptions
    {
        Retry = { MaxRetries = 0, NetworkTimeout = TimeSpan.FromSeconds(10) },
    });

static async Task Administration(string connectionString)
{
    var client = Administrator(connectionString);
    await client.CreateQueueAsync("made");
    var names = new List<string>();
    await foreach (var queue in client.GetQueuesAsync())
    {
        names.Add(queue.Name);
    }
    await client.DeleteQueueAsync("made");
    if (!names.Order().SequenceEqual(["made", "queue.1"])
        || !await client.SubscriptionExistsAsync("topic.1", "subscription.1"))
    {
        throw new InvalidOperationException($"there are {string.Join(' ', names)}");
    }
}

static async Task NoAdministration(string connectionString)
{
    try
    {
        await Administrator(connectionString).GetQueueAsync("queue.1");
    }
    catch (ServiceBusException error) when (error.Reason == ServiceBusFailureReason.ServiceCommunicationProblem)
    {
        return;
    }
    catch (Azure.RequestFailedException error) when (error.Status == 0)
    {
        return;
    }
    throw new InvalidOperationException("administration went elsewhere");
}
#endif

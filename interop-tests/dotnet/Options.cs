using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using System.Text;
using Azure;
using Azure.Core;
using Azure.Core.Amqp;
using Microsoft.Extensions.Azure;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;

namespace Interop;

/// <summary>Constructors and options of the SDK that no scenario of scenarios.md needs, with what the broker sees of them.</summary>
class Options : SecuredScenarios
{
    sealed class Bearer(string token) : TokenCredential
    {
        public override AccessToken GetToken(TokenRequestContext context, CancellationToken cancellation) => new(token, Now.AddHours(1));

        public override ValueTask<AccessToken> GetTokenAsync(TokenRequestContext context, CancellationToken cancellation) =>
            new(GetToken(context, cancellation));
    }

    static async Task<TokenCredential> Owner() => new Bearer(await Secured.Token("""{"roles": ["Azure Service Bus Data Owner"]}"""));

    [Scenario("", "a client is made by connection string, named key, signature and identity")]
    public async Task AClientIsMadeInEveryWay()
    {
        await Administrator.CreateQueueAsync("options-credentials");
        var key = new AzureNamedKeyCredential(Secured.Root, Secured.RootKey);
        var owner = await Owner();
        await RoundTrip(Own(new ServiceBusClient(Secured.ConnectionString)), "options-credentials");
        await RoundTrip(Own(new ServiceBusClient(Secured.Address, key, Once())), "options-credentials");
        await RoundTrip(Own(new ServiceBusClient(Secured.Address, owner)), "options-credentials");
        foreach (var administrator in new[]
        {
            new ServiceBusAdministrationClient(Secured.Address, key, new ServiceBusAdministrationClientOptions()),
            new ServiceBusAdministrationClient(Secured.Address, owner, new ServiceBusAdministrationClientOptions()),
        })
        {
            Check.Equal("options-credentials", (await administrator.GetQueueAsync("options-credentials")).Value.Name);
        }
        var parsed = ServiceBusConnectionStringProperties.Parse(Secured.ConnectionString + ";EntityPath=options-credentials");
        Check.Equal(Secured.Address, parsed.FullyQualifiedNamespace);
        Check.Equal("options-credentials", parsed.EntityPath);
        Check.Equal(Secured.RootKey, parsed.SharedAccessKey);
    }

    [Scenario("", "clients are made by dependency injection")]
    public async Task ClientsAreMadeByDependencyInjection()
    {
        await Administrator.CreateQueueAsync("options-injection");
        var owner = await Owner();
        IConfiguration Configured(string name, string value) =>
            new ConfigurationBuilder().AddInMemoryCollection(new Dictionary<string, string?> { [name] = value }).Build();
        var services = new ServiceCollection();
        services.AddAzureClients(builder =>
        {
            builder.AddServiceBusClient(Secured.ConnectionString).WithName("string").ConfigureOptions(options => options.Identifier = "injected");
            builder.AddServiceBusClientWithNamespace(Secured.Address).WithName("namespace").WithCredential(owner);
            builder.AddServiceBusClient(Configured("connectionString", Secured.ConnectionString)).WithName("configuration");
            builder.AddServiceBusAdministrationClient(Secured.ConnectionString).WithName("string");
            builder.AddServiceAdministrationBusClient(Secured.ConnectionString).WithName("former name");
            builder.AddServiceBusAdministrationClientWithNamespace(Secured.Address).WithName("namespace").WithCredential(owner);
            builder.AddServiceBusAdministrationClient(Configured("connectionString", Secured.ConnectionString)).WithName("configuration");
        });
        await using var provider = services.BuildServiceProvider();
        var clients = provider.GetRequiredService<IAzureClientFactory<ServiceBusClient>>();
        var administrators = provider.GetRequiredService<IAzureClientFactory<ServiceBusAdministrationClient>>();
        Check.Equal("injected", clients.CreateClient("string").Identifier);
        Check.Equal(true, (await administrators.CreateClient("former name").QueueExistsAsync("options-injection")).Value);
        foreach (var name in new[] { "string", "namespace", "configuration" })
        {
            await RoundTrip(Own(clients.CreateClient(name)), "options-injection");
            Check.Equal(true, (await administrators.CreateClient(name).QueueExistsAsync("options-injection")).Value);
        }
    }

    [Scenario("", "clients, senders and receivers have names of the user's")]
    public async Task ClientsSendersAndReceiversHaveNames()
    {
        await CreateQueue("options-names");
        await CreateQueue("options-names-sessions", options => options.RequiresSession = true);
        var options = Options();
        options.Identifier = "client ü";
        options.RetryOptions = new ServiceBusRetryOptions { TryTimeout = Deadline };
        var client = Connect(options: options);
        Check.Equal("client ü", client.Identifier);
        var sender = client.CreateSender("options-names", new ServiceBusSenderOptions { Identifier = "sender ü" });
        var receiver = client.CreateReceiver("options-names", new ServiceBusReceiverOptions { Identifier = "receiver ü" });
        Check.Equal(["sender ü", "receiver ü"], new[] { sender.Identifier, receiver.Identifier });
        await sender.SendMessageAsync(Message(1));
        Check.Equal("1", (await ReceiveOne(receiver)).Body.ToString());
        await using (var sessions = client.CreateSender("options-names-sessions"))
        {
            await sessions.SendMessageAsync(InSession("x", 2));
        }
        // A session that others hold as well is asked for by its lock token; the broker has no such sessions (S332).
        var shared = new ServiceBusSessionReceiverOptions { EnableNonExclusiveSession = true, SessionLockToken = Guid.NewGuid() };
        await Refuses("", () => client.AcceptSessionAsync("options-names-sessions", "x", shared));
        var session = await client.AcceptNextSessionAsync("options-names-sessions", new ServiceBusSessionReceiverOptions { Identifier = "session ü" });
        Check.Equal("session ü", session.Identifier);
        Check.Equal("2", (await ReceiveOne(session)).Body.ToString());
    }

    [Scenario("", "an idle connection lives as long as both ends write in time")]
    public async Task AnIdleConnectionLives()
    {
        await CreateQueue("options-idle");
        await using var proxy = new TcpProxy();
        var options = Options();
        options.ConnectionIdleTimeout = Seconds(4);
        var receiver = Connect(proxy.ConnectionString, options).CreateReceiver("options-idle");
        // Three times what the client lets the broker be silent.
        await ReceiveNothing(receiver, Seconds(12));
        await Send("options-idle", Message(1));
        Check.Equal("1", (await ReceiveOne(receiver)).Body.ToString());
        Check.Equal(1, proxy.Connections);
    }

    /// <summary>A proxy of HTTP that makes tunnels, and tells to where.</summary>
    sealed class TunnelProxy : IAsyncDisposable
    {
        readonly TcpListener listener = new(IPAddress.Loopback, 0);

        public List<string> Requests { get; } = [];

        public TunnelProxy()
        {
            listener.Start();
            _ = Accept();
        }

        public Uri Address => new($"http://{listener.LocalEndpoint}");

        async Task Accept()
        {
            try
            {
                while (true)
                {
                    _ = Tunnel(await listener.AcceptTcpClientAsync());
                }
            }
            catch (Exception error) when (error is SocketException or ObjectDisposedException)
            {
                // The scenario has ended.
            }
        }

        async Task Tunnel(TcpClient client)
        {
            using (client)
            {
                var stream = client.GetStream();
                var head = "";
                var one = new byte[1];
                while (!head.EndsWith("\r\n\r\n") && await stream.ReadAsync(one) == 1)
                {
                    head += (char)one[0];
                }
                var words = head.Split(' ');
                lock (Requests)
                {
                    Requests.Add($"{words[0]} {words[1]}");
                }
                var at = words[1].Split(':');
                using var server = new TcpClient(at[0], int.Parse(at[1]));
                await stream.WriteAsync(Encoding.ASCII.GetBytes("HTTP/1.1 200 OK\r\n\r\n"));
                await Task.WhenAny(stream.CopyToAsync(server.GetStream()), server.GetStream().CopyToAsync(stream));
            }
        }

        public ValueTask DisposeAsync()
        {
            listener.Stop();
            return ValueTask.CompletedTask;
        }
    }

    [Scenario("", "a WebSocket goes through a proxy of HTTP")]
    public async Task AWebSocketGoesThroughAProxy()
    {
        await Administrator.CreateQueueAsync("options-proxy");
        await using var proxy = new TunnelProxy();
        var options = OverWebSockets();
        options.WebProxy = new WebProxy(proxy.Address);
        await RoundTrip(Connect(Secured.ConnectionString, options), "options-proxy");
        Check.Equal($"CONNECT {Secured.Address}:443", string.Join(", ", proxy.Requests.Distinct()));
    }

    /// <summary>Tries twice again, and remembers why.</summary>
    sealed class Persistent : ServiceBusRetryPolicy
    {
        public List<ServiceBusFailureReason> Reasons { get; } = [];

        public override TimeSpan CalculateTryTimeout(int attemptCount) => Seconds(2);

        public override TimeSpan? CalculateRetryDelay(Exception lastException, int attemptCount)
        {
            Reasons.Add(((ServiceBusException)lastException).Reason);
            return attemptCount <= 2 ? Seconds(0.1) : null;
        }
    }

    [Scenario("", "a call is tried again as the client's policy says")]
    public async Task ACallIsTriedAgainAsThePolicySays()
    {
        await CreateQueue("options-retry", options => options.RequiresSession = true);
        var policy = new Persistent();
        Check.Equal(Seconds(2), policy.CalculateTryTimeout(1));
        Check.Equal(Seconds(0.1), policy.CalculateRetryDelay(new ServiceBusException("", ServiceBusFailureReason.ServiceTimeout), 2));
        policy.Reasons.Clear();
        // What a client asks for when it waits for a session is the option all the same.
        var custom = new ServiceBusClientOptions { RetryOptions = { CustomRetryPolicy = policy, TryTimeout = Seconds(2) } };
        var begin = Stopwatch.GetTimestamp();
        await Fails(ServiceBusFailureReason.ServiceTimeout, () => Connect(options: custom).AcceptNextSessionAsync("options-retry"));
        Check.Equal(Enumerable.Repeat(ServiceBusFailureReason.ServiceTimeout, 3), policy.Reasons);
        Check.True(Stopwatch.GetElapsedTime(begin) >= Seconds(5), "three waits of two seconds end early");

        var settings = new ServiceBusRetryOptions { Mode = ServiceBusRetryMode.Fixed, MaxRetries = 1, Delay = Seconds(1), TryTimeout = Seconds(2) };
        var fixedDelay = new ServiceBusClientOptions { RetryOptions = settings };
        begin = Stopwatch.GetTimestamp();
        await Fails(ServiceBusFailureReason.ServiceTimeout, () => Connect(options: fixedDelay).AcceptNextSessionAsync("options-retry"));
        Check.True(Stopwatch.GetElapsedTime(begin) >= Seconds(4), "two waits of two seconds and a pause end early");
    }

    [Scenario("", "a batch takes as many bytes as it was made for")]
    public async Task ABatchTakesAsManyBytesAsItWasMadeFor()
    {
        await CreateQueue("options-batch");
        var sender = Client.CreateSender("options-batch");
        var batch = await sender.CreateMessageBatchAsync(new CreateMessageBatchOptions { MaxSizeInBytes = 4_000 });
        Check.Equal(4_000, batch.MaxSizeInBytes);
        while (batch.TryAddMessage(OfSize(500)))
        {
        }
        Check.True(batch.Count is >= 5 and < 8 && batch.SizeInBytes is > 2_500 and <= 4_000, $"{batch.Count} messages, {batch.SizeInBytes} bytes");
        var count = batch.Count;
        await sender.SendMessagesAsync(batch);
        batch.Dispose();
        Check.Equal(count, (await Receive(Client.CreateReceiver("options-batch"), count)).Count);
        await Check.Throws<ArgumentOutOfRangeException>(async () =>
            await sender.CreateMessageBatchAsync(new CreateMessageBatchOptions { MaxSizeInBytes = 1L << 40 }));
    }

    [Scenario("", "a message that was received is sent on, and rebuilt from its bytes")]
    public async Task AMessageThatWasReceivedIsSentOn()
    {
        await CreateQueue("options-messages");
        var sender = Client.CreateSender("options-messages");
        var receiver = Client.CreateReceiver("options-messages");
        var first = new ServiceBusMessage((ReadOnlyMemory<byte>)Pattern(100)) { Subject = "first", ApplicationProperties = { ["n"] = 1 } };
        await sender.SendMessageAsync(first);
        var received = await ReceiveOne(receiver);
        await receiver.CompleteMessageAsync(received);
        Check.Equal(Pattern(100), received.Body.ToArray());

        // A copy has the sender's properties, and none of the broker's.
        await sender.SendMessageAsync(new ServiceBusMessage(received));
        var copy = await ReceiveOne(receiver);
        Check.Equal(Pattern(100), copy.Body.ToArray());
        Check.Equal("first", copy.Subject);
        Check.Equal<object>(1, copy.ApplicationProperties["n"]);
        Check.Equal(received.MessageId, copy.MessageId);
        Check.Equal(2, copy.SequenceNumber);
        Check.Equal(0, Count(copy));

        await sender.SendMessageAsync(new ServiceBusMessage("before") { Body = BinaryData.FromString("after") });
        var changed = await ReceiveOne(receiver);
        Check.Equal("after", changed.Body.ToString());

        // As programs do that get messages from elsewhere: the bytes of AMQP, and the lock token beside them.
        var bytes = changed.GetRawAmqpMessage().ToBytes();
        var token = BinaryData.FromBytes(Guid.Parse(changed.LockToken).ToByteArray());
        var rebuilt = ServiceBusReceivedMessage.FromAmqpMessage(AmqpAnnotatedMessage.FromBytes(bytes), token);
        Check.Equal(changed.SequenceNumber, rebuilt.SequenceNumber);
        await receiver.CompleteMessageAsync(rebuilt);
        await ReceiveNothing(receiver);
        Check.Equal(1, (await PeekAll(receiver)).Count);
    }

    [Scenario("", "a subscription has processors, sessions are listed by time, and a manager of rules is closed")]
    public async Task ASubscriptionHasProcessors()
    {
        await Administration.CreateTopicAsync("options-topic");
        await Administration.CreateSubscriptionAsync("options-topic", "plain");
        await Administration.CreateSubscriptionAsync(new CreateSubscriptionOptions("options-topic", "sessions") { RequiresSession = true });
        var before = Now - Seconds(60);
        var session = await Client.AcceptSessionAsync("options-topic", "sessions", "x");
        await session.SetSessionStateAsync(BinaryData.FromString("state"));
        Check.Equal(["x"], await Sessions.Listed(Client.GetMessageSessionsAsync("options-topic", "sessions", before)));
        await session.CloseAsync();

        var seen = new System.Collections.Concurrent.ConcurrentQueue<string>();
        async Task Runs(ServiceBusProcessor processor, int body)
        {
            processor.ProcessMessageAsync += arguments =>
            {
                seen.Enqueue(arguments.Message.Body.ToString());
                return Task.CompletedTask;
            };
            processor.ProcessErrorAsync += _ => Task.CompletedTask;
            await processor.StartProcessingAsync();
            await Send("options-topic", InSession("x", body));
            await Check.Eventually(() => Task.FromResult(seen.Contains($"{body}")), $"message {body}");
            await processor.StopProcessingAsync();
            await processor.DisposeAsync();
        }
        await Runs(Client.CreateProcessor("options-topic", "plain"), 1);
        await Runs(Client.CreateProcessor("options-topic", "plain", new ServiceBusProcessorOptions { Identifier = "named" }), 2);

        var manager = Client.CreateRuleManager("options-topic", "plain");
        Check.Equal(["$Default"], (await Rules.Listed(manager)).Keys);
        await manager.CloseAsync();
        Check.True(manager.IsClosed, "it is open");
    }

    [Scenario("", "entities are made as others are")]
    public async Task EntitiesAreMadeAsOthersAre()
    {
        var queue = new CreateQueueOptions("options-made") { Name = "options-made-1", EnablePartitioning = true, MaxDeliveryCount = 3, UserMetadata = "mine" };
        var made = (await Administrator.CreateQueueAsync(queue)).Value;
        Check.True(made.EnablePartitioning, "it has no partitions");
        var likeIt = (await Administrator.CreateQueueAsync(new CreateQueueOptions(made) { Name = "options-made-2" })).Value;
        Check.Equal((true, 3, "mine"), (likeIt.EnablePartitioning, likeIt.MaxDeliveryCount, likeIt.UserMetadata));

        var topic = (await Administrator.CreateTopicAsync(
            new CreateTopicOptions("options-made") { Name = "options-made-t1", EnablePartitioning = true, Status = EntityStatus.SendDisabled })).Value;
        Check.Equal((true, EntityStatus.SendDisabled), (topic.EnablePartitioning, topic.Status));
        topic.Name = "options-made-t2";
        topic.EnablePartitioning = false;
        var topicLikeIt = (await Administrator.CreateTopicAsync(new CreateTopicOptions(topic) { Status = EntityStatus.Active })).Value;
        Check.Equal((false, EntityStatus.Active, "options-made-t2"), (topicLikeIt.EnablePartitioning, topicLikeIt.Status, topicLikeIt.Name));

        var subscription = (await Administrator.CreateSubscriptionAsync(new CreateSubscriptionOptions("t", "s")
        {
            TopicName = "options-made-t1", SubscriptionName = "one", Status = EntityStatus.ReceiveDisabled, LockDuration = Seconds(40),
        })).Value;
        Check.Equal((EntityStatus.ReceiveDisabled, "one", Seconds(40)), (subscription.Status, subscription.SubscriptionName, subscription.LockDuration));
        (subscription.TopicName, subscription.SubscriptionName, subscription.RequiresSession) = ("options-made-t2", "two", true);
        var subscriptionLikeIt = (await Administrator.CreateSubscriptionAsync(
            new CreateSubscriptionOptions(subscription) { Status = EntityStatus.Active })).Value;
        Check.Equal((EntityStatus.Active, "two", Seconds(40), true),
            (subscriptionLikeIt.Status, subscriptionLikeIt.SubscriptionName, subscriptionLikeIt.LockDuration, subscriptionLikeIt.RequiresSession));
        Check.Equal("options-made-t2", subscriptionLikeIt.TopicName);

        var options = new CreateRuleOptions("any", new SqlRuleFilter("n = 1")) { Name = "one" };
        var rule = (await Administrator.CreateRuleAsync("options-made-t1", "one", options)).Value;
        var ruleLikeIt = (await Administrator.CreateRuleAsync("options-made-t2", "two", new CreateRuleOptions(rule))).Value;
        Check.Equal(("one", "n = 1"), (ruleLikeIt.Name, ((SqlRuleFilter)ruleLikeIt.Filter).SqlExpression));
    }

    [Scenario("", "every property of topics, subscriptions and keys that can be changed is changed")]
    public async Task EveryPropertyIsChanged()
    {
        await Administrator.CreateQueueAsync("options-target");
        await Administrator.CreateTopicAsync(new CreateTopicOptions("options-changed") { RequiresDuplicateDetection = true });
        var topic = (await Administrator.GetTopicAsync("options-changed")).Value;
        topic.DuplicateDetectionHistoryTimeWindow = TimeSpan.FromMinutes(3);
        topic.EnableBatchedOperations = false;
        topic.SupportOrdering = true;
        topic.MaxSizeInMegabytes = 2_048;
        topic.MaxMessageSizeInKilobytes = 2_048;
        var key = new SharedAccessAuthorizationRule("mine", Secured.RootKey, [AccessRights.Listen]);
        topic.AuthorizationRules.Add(key);
        topic = (await Administrator.UpdateTopicAsync(topic)).Value;
        Check.Equal((TimeSpan.FromMinutes(3), false, true), (topic.DuplicateDetectionHistoryTimeWindow, topic.EnableBatchedOperations, topic.SupportOrdering));
        Check.Equal((2_048L, 2_048L), (topic.MaxSizeInMegabytes, topic.MaxMessageSizeInKilobytes ?? 0));

        var rule = (SharedAccessAuthorizationRule)topic.AuthorizationRules.Single();
        Check.Equal(("mine", Secured.RootKey), (rule.KeyName, rule.PrimaryKey));
        AuthorizationRule any = rule;
        any.KeyName = "yours";
        any.Rights = [AccessRights.Send];
        (rule.PrimaryKey, rule.SecondaryKey) = (Secured.SpeakerKey, Secured.ListenerKey);
        rule = (SharedAccessAuthorizationRule)(await Administrator.UpdateTopicAsync(topic)).Value.AuthorizationRules.Single();
        Check.Equal(("yours", Secured.SpeakerKey, Secured.ListenerKey), (rule.KeyName, rule.PrimaryKey, rule.SecondaryKey));
        Check.Equal([AccessRights.Send], rule.Rights);
        await Connect(Secured.With("yours", Secured.ListenerKey) + ";EntityPath=options-changed", Once())
            .CreateSender("options-changed").SendMessageAsync(Message(1));

        var subscription = (await Administrator.CreateSubscriptionAsync("options-changed", "s")).Value;
        subscription.ForwardTo = "options-target";
        subscription.ForwardDeadLetteredMessagesTo = "options-target";
        subscription = (await Administrator.UpdateSubscriptionAsync(subscription)).Value;
        Check.True(subscription.ForwardTo.EndsWith("options-target") && subscription.ForwardDeadLetteredMessagesTo.EndsWith("options-target"),
            $"{subscription.ForwardTo} {subscription.ForwardDeadLetteredMessagesTo}");
    }
}

using System.Diagnostics;
using Azure;
using Azure.Core;
using Azure.Core.Amqp;
using Microsoft.Extensions.Azure;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;

namespace Interop;

/// <summary>
/// Constructors and options of the SDK that no scenario of scenarios.md needs, with what the broker sees of them.
/// </summary>
class Options : SecuredScenarios
{
    sealed class Bearer(string token) : TokenCredential
    {
        public override AccessToken GetToken(TokenRequestContext context, CancellationToken cancellation) =>
            new(token, Now.AddHours(1));

        public override ValueTask<AccessToken> GetTokenAsync(TokenRequestContext context,
            CancellationToken cancellation) =>
            new(GetToken(context, cancellation));
    }

    static async Task<TokenCredential> Owner() =>
        new Bearer(await Secured.Token("""{"roles": ["Azure Service Bus Data Owner"]}"""));

    [Scenario("S562", "a client is made by connection string, named key, signature and identity")]
    public async Task AClientIsMadeInEveryWay()
    {
        await Administrator.CreateQueueAsync("s562");
        var key = new AzureNamedKeyCredential(Secured.Root, Secured.RootKey);
        var owner = await Owner();
        await RoundTrip(Own(new ServiceBusClient(Secured.ConnectionString)), "s562");
        await RoundTrip(Own(new ServiceBusClient(Secured.Address, key, Once())), "s562");
        await RoundTrip(Own(new ServiceBusClient(Secured.Address, owner)), "s562");
        foreach (var administrator in new[]
        {
            new ServiceBusAdministrationClient(Secured.Address, key, new ServiceBusAdministrationClientOptions()),
            new ServiceBusAdministrationClient(Secured.Address, owner, new ServiceBusAdministrationClientOptions()),
        })
        {
            Check.Equal("s562", (await administrator.GetQueueAsync("s562")).Value.Name);
        }
        var parsed = ServiceBusConnectionStringProperties.Parse(Secured.ConnectionString + ";EntityPath=s562");
        Check.Equal(Secured.Address, parsed.FullyQualifiedNamespace);
        Check.Equal("s562", parsed.EntityPath);
        Check.Equal(Secured.RootKey, parsed.SharedAccessKey);
    }

    [Scenario("S563", "clients are made by dependency injection")]
    public async Task ClientsAreMadeByDependencyInjection()
    {
        await Administrator.CreateQueueAsync("s563");
        var owner = await Owner();
        IConfiguration Configured(string name, string value) =>
            new ConfigurationBuilder().AddInMemoryCollection(new Dictionary<string, string?> { [name] = value })
                .Build();
        var services = new ServiceCollection();
        services.AddAzureClients(builder =>
        {
            builder.AddServiceBusClient(Secured.ConnectionString).WithName("string")
                .ConfigureOptions(options => options.Identifier = "injected");
            builder.AddServiceBusClientWithNamespace(Secured.Address).WithName("namespace").WithCredential(owner);
            builder.AddServiceBusClient(Configured("connectionString", Secured.ConnectionString))
                .WithName("configuration");
            builder.AddServiceBusAdministrationClient(Secured.ConnectionString).WithName("string");
            builder.AddServiceAdministrationBusClient(Secured.ConnectionString).WithName("former name");
            builder.AddServiceBusAdministrationClientWithNamespace(Secured.Address).WithName("namespace")
                .WithCredential(owner);
            builder.AddServiceBusAdministrationClient(Configured("connectionString", Secured.ConnectionString))
                .WithName("configuration");
        });
        await using var provider = services.BuildServiceProvider();
        var clients = provider.GetRequiredService<IAzureClientFactory<ServiceBusClient>>();
        var administrators = provider.GetRequiredService<IAzureClientFactory<ServiceBusAdministrationClient>>();
        Check.Equal("injected", clients.CreateClient("string").Identifier);
        Check.Equal(true, (await administrators.CreateClient("former name").QueueExistsAsync("s563")).Value);
        foreach (var name in new[] { "string", "namespace", "configuration" })
        {
            await RoundTrip(Own(clients.CreateClient(name)), "s563");
            Check.Equal(true, (await administrators.CreateClient(name).QueueExistsAsync("s563")).Value);
        }
    }

    [Scenario("S564", "clients, senders and receivers have names of the user's")]
    public async Task ClientsSendersAndReceiversHaveNames()
    {
        await CreateQueue("s564");
        await CreateQueue("s564s", options => options.RequiresSession = true);
        var options = Options();
        options.Identifier = "client ü";
        options.RetryOptions = new ServiceBusRetryOptions { TryTimeout = Deadline };
        var client = Connect(options: options);
        Check.Equal("client ü", client.Identifier);
        var sender = client.CreateSender("s564", new ServiceBusSenderOptions { Identifier = "sender ü" });
        var receiver = client.CreateReceiver("s564", new ServiceBusReceiverOptions { Identifier = "receiver ü" });
        Check.Equal(["sender ü", "receiver ü"], new[] { sender.Identifier, receiver.Identifier });
        await sender.SendMessageAsync(Message(1));
        Check.Equal("1", (await ReceiveOne(receiver)).Body.ToString());
        await using (var sessions = client.CreateSender("s564s"))
        {
            await sessions.SendMessageAsync(InSession("x", 2));
        }
        // A session that others hold as well is asked for by its lock token; the broker has no such sessions (S332).
        var shared = new ServiceBusSessionReceiverOptions
        {
            EnableNonExclusiveSession = true, SessionLockToken = Guid.NewGuid(),
        };
        await Refuses("", () => client.AcceptSessionAsync("s564s", "x", shared));
        var session = await client.AcceptNextSessionAsync("s564s",
            new ServiceBusSessionReceiverOptions { Identifier = "session ü" });
        Check.Equal("session ü", session.Identifier);
        Check.Equal("2", (await ReceiveOne(session)).Body.ToString());
    }

    [Scenario("S565", "an idle connection lives as long as both ends write in time")]
    public async Task AnIdleConnectionLives()
    {
        await CreateQueue("s565");
        var proxy = Own(new FaultProxy());
        var options = Options();
        options.ConnectionIdleTimeout = Seconds(4);
        var receiver = Connect(proxy.ConnectionString, options).CreateReceiver("s565");
        // Three times what the client lets the broker be silent.
        await ReceiveNothing(receiver, Seconds(12));
        await Send("s565", Message(1));
        Check.Equal("1", (await ReceiveOne(receiver)).Body.ToString());
        Check.Equal(1, proxy.Connections);
    }

    [Scenario("S566", "a call is tried again after a fixed delay")]
    public async Task ACallIsTriedAgainAfterAFixedDelay()
    {
        await CreateQueue("s566", options => options.RequiresSession = true);
        var retries = new ServiceBusRetryOptions { Mode = ServiceBusRetryMode.Fixed, MaxRetries = 1, Delay = Seconds(2),
            TryTimeout = Seconds(2) };
        var client = Connect(options: new ServiceBusClientOptions { RetryOptions = retries });
        var begin = Stopwatch.GetTimestamp();
        await Fails(ServiceBusFailureReason.ServiceTimeout, () => client.AcceptNextSessionAsync("s566"));
        // Two waits and the delay between them, of which the SDK varies the length a little.
        Check.True(Stopwatch.GetElapsedTime(begin) >= Seconds(5), $"it ends after {Stopwatch.GetElapsedTime(begin)}");
    }

    [Scenario("S567", "a message that was received is sent on, and rebuilt from its bytes")]
    public async Task AMessageThatWasReceivedIsSentOn()
    {
        await CreateQueue("s567");
        var sender = Client.CreateSender("s567");
        var receiver = Client.CreateReceiver("s567");
        var first = new ServiceBusMessage((ReadOnlyMemory<byte>)Pattern(100))
        {
            Subject = "first", ApplicationProperties = { ["n"] = 1 },
        };
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

    [Scenario("S568", "a subscription has processors, sessions are listed by time, and a manager of rules is closed")]
    public async Task ASubscriptionHasProcessors()
    {
        await Administration.CreateTopicAsync("s568");
        await Administration.CreateSubscriptionAsync("s568", "plain");
        await Administration.CreateSubscriptionAsync(
            new CreateSubscriptionOptions("s568", "sessions") { RequiresSession = true });
        var before = Now - Seconds(60);
        var session = await Client.AcceptSessionAsync("s568", "sessions", "x");
        await session.SetSessionStateAsync(BinaryData.FromString("state"));
        Check.Equal(["x"], await Sessions.Listed(Client.GetMessageSessionsAsync("s568", "sessions", before)));
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
            await Send("s568", InSession("x", body));
            await Check.Eventually(() => Task.FromResult(seen.Contains($"{body}")), $"message {body}");
            await processor.StopProcessingAsync();
            await processor.DisposeAsync();
        }
        await Runs(Client.CreateProcessor("s568", "plain"), 1);
        await Runs(Client.CreateProcessor("s568", "plain", new ServiceBusProcessorOptions { Identifier = "named" }), 2);

        var manager = Client.CreateRuleManager("s568", "plain");
        Check.Equal(["$Default"], (await Rules.Listed(manager)).Keys);
        await manager.CloseAsync();
        Check.True(manager.IsClosed, "it is open");
    }

    [Scenario("S569", "entities are made as others are")]
    public async Task EntitiesAreMadeAsOthersAre()
    {
        var queue = new CreateQueueOptions("s569") { Name = "s569", EnablePartitioning = true, MaxDeliveryCount = 3,
            UserMetadata = "mine" };
        var made = (await Administrator.CreateQueueAsync(queue)).Value;
        Check.True(made.EnablePartitioning, "it has no partitions");
        var likeIt = (await Administrator.CreateQueueAsync(new CreateQueueOptions(made) { Name = "s569b" })).Value;
        Check.Equal((true, 3, "mine"), (likeIt.EnablePartitioning, likeIt.MaxDeliveryCount, likeIt.UserMetadata));

        var topic = (await Administrator.CreateTopicAsync(
            new CreateTopicOptions("s569") { Name = "s569t", EnablePartitioning = true,
                Status = EntityStatus.SendDisabled })).Value;
        Check.Equal((true, EntityStatus.SendDisabled), (topic.EnablePartitioning, topic.Status));
        topic.Name = "s569u";
        topic.EnablePartitioning = false;
        var topicLikeIt = (await Administrator.CreateTopicAsync(
            new CreateTopicOptions(topic) { Status = EntityStatus.Active })).Value;
        Check.Equal((false, EntityStatus.Active, "s569u"), (topicLikeIt.EnablePartitioning, topicLikeIt.Status,
            topicLikeIt.Name));

        var subscription = (await Administrator.CreateSubscriptionAsync(new CreateSubscriptionOptions("t", "s")
        {
            TopicName = "s569t", SubscriptionName = "one", Status = EntityStatus.ReceiveDisabled,
                LockDuration = Seconds(40),
        })).Value;
        Check.Equal((EntityStatus.ReceiveDisabled, "one", Seconds(40)),
            (subscription.Status, subscription.SubscriptionName, subscription.LockDuration));
        (subscription.TopicName, subscription.SubscriptionName, subscription.RequiresSession) = ("s569u", "two", true);
        var subscriptionLikeIt = (await Administrator.CreateSubscriptionAsync(
            new CreateSubscriptionOptions(subscription) { Status = EntityStatus.Active })).Value;
        Check.Equal((EntityStatus.Active, "two", Seconds(40), true),
            (subscriptionLikeIt.Status, subscriptionLikeIt.SubscriptionName, subscriptionLikeIt.LockDuration,
                subscriptionLikeIt.RequiresSession));
        Check.Equal("s569u", subscriptionLikeIt.TopicName);

        var options = new CreateRuleOptions("any", new SqlRuleFilter("n = 1")) { Name = "one" };
        var rule = (await Administrator.CreateRuleAsync("s569t", "one", options)).Value;
        var ruleLikeIt = (await Administrator.CreateRuleAsync("s569u", "two", new CreateRuleOptions(rule))).Value;
        Check.Equal(("one", "n = 1"), (ruleLikeIt.Name, ((SqlRuleFilter)ruleLikeIt.Filter).SqlExpression));
    }

    [Scenario("S570", "every property of topics, subscriptions and keys that can be changed is changed")]
    public async Task EveryPropertyIsChanged()
    {
        await Administrator.CreateQueueAsync("s570b");
        await Administrator.CreateTopicAsync(new CreateTopicOptions("s570") { RequiresDuplicateDetection = true });
        var topic = (await Administrator.GetTopicAsync("s570")).Value;
        topic.DuplicateDetectionHistoryTimeWindow = TimeSpan.FromMinutes(3);
        topic.EnableBatchedOperations = false;
        topic.SupportOrdering = true;
        topic.MaxSizeInMegabytes = 2_048;
        topic.MaxMessageSizeInKilobytes = 2_048;
        var key = new SharedAccessAuthorizationRule("mine", Secured.RootKey, [AccessRights.Listen]);
        topic.AuthorizationRules.Add(key);
        topic = (await Administrator.UpdateTopicAsync(topic)).Value;
        Check.Equal((TimeSpan.FromMinutes(3), false, true), (topic.DuplicateDetectionHistoryTimeWindow,
            topic.EnableBatchedOperations, topic.SupportOrdering));
        Check.Equal((2_048L, 2_048L), (topic.MaxSizeInMegabytes, topic.MaxMessageSizeInKilobytes ?? 0));

        var rule = (SharedAccessAuthorizationRule)topic.AuthorizationRules.Single();
        Check.Equal(("mine", Secured.RootKey), (rule.KeyName, rule.PrimaryKey));
        AuthorizationRule any = rule;
        any.KeyName = "yours";
        any.Rights = [AccessRights.Send];
        (rule.PrimaryKey, rule.SecondaryKey) = (Secured.SpeakerKey, Secured.ListenerKey);
        rule = (SharedAccessAuthorizationRule)(await Administrator.UpdateTopicAsync(topic))
            .Value.AuthorizationRules.Single();
        Check.Equal(("yours", Secured.SpeakerKey, Secured.ListenerKey), (rule.KeyName, rule.PrimaryKey,
            rule.SecondaryKey));
        Check.Equal([AccessRights.Send], rule.Rights);
        await Connect(Secured.With("yours", Secured.ListenerKey) + ";EntityPath=s570", Once())
            .CreateSender("s570").SendMessageAsync(Message(1));

        var subscription = (await Administrator.CreateSubscriptionAsync("s570", "s")).Value;
        subscription.ForwardTo = "s570b";
        subscription.ForwardDeadLetteredMessagesTo = "s570b";
        subscription = (await Administrator.UpdateSubscriptionAsync(subscription)).Value;
        Check.True(subscription.ForwardTo.EndsWith("s570b") && subscription.ForwardDeadLetteredMessagesTo
            .EndsWith("s570b"),
            $"{subscription.ForwardTo} {subscription.ForwardDeadLetteredMessagesTo}");
    }
}

using Azure.Core;
using Azure.Core.Pipeline;

namespace Interop;

/// <summary>
/// Queues, topics and subscriptions under an administrator's hand, at the secured broker; rules: RuleAdministration.cs.
/// </summary>
class Administration : SecuredScenarios
{
    static readonly TimeSpan Forever = TimeSpan.MaxValue;

    [Scenario("S271", "a queue has the properties that it was made with")]
    public async Task AQueueHasThePropertiesThatItWasMadeWith()
    {
        var options = new CreateQueueOptions("s271")
        {
            LockDuration = Seconds(45), MaxSizeInMegabytes = 2048, RequiresDuplicateDetection = true,
            RequiresSession = true,
            DefaultMessageTimeToLive = new TimeSpan(1, 2, 3, 4, 500), DeadLetteringOnMessageExpiration = true,
            DuplicateDetectionHistoryTimeWindow = TimeSpan.FromMinutes(7), MaxDeliveryCount = 7,
            EnableBatchedOperations = false,
            AutoDeleteOnIdle = TimeSpan.FromDays(1), UserMetadata = "<mine> & \"ü\"", MaxMessageSizeInKilobytes = 512,
            AuthorizationRules =
            {
                new SharedAccessAuthorizationRule("speaker", [AccessRights.Send]),
                new SharedAccessAuthorizationRule("all", [AccessRights.Manage, AccessRights.Send, AccessRights.Listen]),
            },
        };
        Described.Same(options, (await Administrator.CreateQueueAsync(options)).Value);
        QueueProperties queue = await Administrator.GetQueueAsync("s271");
        Described.Same(options, queue);

        // What can be changed.
        queue.LockDuration = Seconds(10);
        queue.MaxSizeInMegabytes = 1024;
        queue.DefaultMessageTimeToLive = Forever;
        queue.DeadLetteringOnMessageExpiration = false;
        queue.DuplicateDetectionHistoryTimeWindow = TimeSpan.FromMinutes(1);
        queue.MaxDeliveryCount = 3;
        queue.EnableBatchedOperations = true;
        queue.AutoDeleteOnIdle = Forever;
        queue.UserMetadata = "other";
        queue.MaxMessageSizeInKilobytes = 256;
        queue.Status = EntityStatus.SendDisabled;
        queue.AuthorizationRules.Remove(queue.AuthorizationRules.Single(each => each.KeyName == "all"));
        Described.Same(queue, (await Administrator.UpdateQueueAsync(queue)).Value);
        Described.Same(queue, (await Administrator.GetQueueAsync("s271")).Value);
        await Fails(ServiceBusFailureReason.MessagingEntityDisabled,
            () => WithRoot().CreateSender("s271").SendMessageAsync(InSession("x", 1)));
    }

    [Scenario("S272", "a queue without properties has the service's defaults")]
    public async Task AQueueWithoutPropertiesHasTheServicesDefaults()
    {
        await Administrator.CreateQueueAsync("S272");
        QueueProperties found = await Administrator.GetQueueAsync("s272");
        // The name is told in lower case. How large a message may be is the broker's to say.
        Described.Same(new CreateQueueOptions("s272"), found, "MaxMessageSizeInKilobytes",
            "DuplicateDetectionHistoryTimeWindow");
        // The SDK sends its own minute only with duplicate detection.
        Check.Equal(TimeSpan.FromMinutes(10), found.DuplicateDetectionHistoryTimeWindow);
        Check.True(found.MaxMessageSizeInKilobytes > 0, $"{found.MaxMessageSizeInKilobytes}");
        Check.Equal(Forever, found.DefaultMessageTimeToLive);
        Check.Equal(Forever, found.AutoDeleteOnIdle);
        await RoundTrip(WithRoot(), "s272");
    }

    [Scenario("S273", "a topic has the properties that it was made with")]
    public async Task ATopicHasThePropertiesThatItWasMadeWith()
    {
        var options = new CreateTopicOptions("s273")
        {
            MaxSizeInMegabytes = 2048, RequiresDuplicateDetection = true,
            DefaultMessageTimeToLive = TimeSpan.FromHours(1),
            DuplicateDetectionHistoryTimeWindow = Seconds(30), EnableBatchedOperations = false,
            AutoDeleteOnIdle = TimeSpan.FromMinutes(5),
            SupportOrdering = true, UserMetadata = "mine", MaxMessageSizeInKilobytes = 512,
            AuthorizationRules = { new SharedAccessAuthorizationRule("listener", [AccessRights.Listen]) },
        };
        Described.Same(options, (await Administrator.CreateTopicAsync(options)).Value);
        TopicProperties topic = await Administrator.GetTopicAsync("s273");
        Described.Same(options, topic);
        topic.DefaultMessageTimeToLive = TimeSpan.FromHours(2);
        topic.UserMetadata = "other";
        topic.AutoDeleteOnIdle = Forever;
        topic.Status = EntityStatus.Disabled;
        Described.Same(topic, (await Administrator.UpdateTopicAsync(topic)).Value);
        Described.Same(topic, (await Administrator.GetTopicAsync("s273")).Value);
        await Fails(ServiceBusFailureReason.MessagingEntityDisabled,
            () => WithRoot().CreateSender("s273").SendMessageAsync(Message(1)));

        await Administrator.CreateTopicAsync("s273plain");
        Described.Same(new CreateTopicOptions("s273plain"), (await Administrator.GetTopicAsync("s273plain")).Value,
            "MaxMessageSizeInKilobytes", "DuplicateDetectionHistoryTimeWindow");
    }

    [Scenario("S274", "a subscription has the properties that it was made with")]
    public async Task ASubscriptionHasThePropertiesThatItWasMadeWith()
    {
        await Administrator.CreateTopicAsync("s274");
        var options = new CreateSubscriptionOptions("s274", "a")
        {
            LockDuration = Seconds(45), RequiresSession = true, DefaultMessageTimeToLive = TimeSpan.FromHours(1),
            DeadLetteringOnMessageExpiration = true, EnableDeadLetteringOnFilterEvaluationExceptions = false,
            MaxDeliveryCount = 7,
            AutoDeleteOnIdle = TimeSpan.FromMinutes(5), EnableBatchedOperations = false, UserMetadata = "mine",
        };
        var first = new CreateRuleOptions("first",
            new SqlRuleFilter("n = 1")) { Action = new SqlRuleAction("SET seen = 'yes'") };
        Described.Same(options, (await Administrator.CreateSubscriptionAsync(options, first)).Value);
        SubscriptionProperties subscription = await Administrator.GetSubscriptionAsync("s274", "a");
        Described.Same(options, subscription);
        Check.Equal(["first: n = 1; SET seen = 'yes'"], await RuleAdministration.Rules("s274", "a"));

        subscription.LockDuration = Seconds(10);
        subscription.MaxDeliveryCount = 1;
        subscription.AutoDeleteOnIdle = Forever;
        subscription.DefaultMessageTimeToLive = TimeSpan.FromHours(2);
        subscription.DeadLetteringOnMessageExpiration = false;
        subscription.EnableDeadLetteringOnFilterEvaluationExceptions = true;
        subscription.EnableBatchedOperations = true;
        subscription.UserMetadata = "other";
        subscription.Status = EntityStatus.ReceiveDisabled;
        Described.Same(subscription, (await Administrator.UpdateSubscriptionAsync(subscription)).Value);
        Described.Same(subscription, (await Administrator.GetSubscriptionAsync("s274", "a")).Value);

        SubscriptionProperties plain = await Administrator.CreateSubscriptionAsync("s274", "plain");
        Described.Same(new CreateSubscriptionOptions("s274", "plain"), plain);
        Check.Equal(["$Default: true"], await RuleAdministration.Rules("s274", "plain"));
    }

    [Scenario("S275", "entities are listed in pages")]
    public async Task EntitiesAreListedInPages()
    {
        var names = Texts(0, 6).Select(each => $"s275-{each}").ToList();
        foreach (var (index, name) in names.Index())
        {
            await Administrator.CreateQueueAsync(new CreateQueueOptions(name) { MaxDeliveryCount = index + 1 });
            await Administrator.CreateTopicAsync($"t{name}");
        }
        // Other scenarios make and delete queues meanwhile: these seven come, once each and in order.
        var queues = (await All(Administrator.GetQueuesAsync())).Where(each => each.Name.StartsWith("s275-"))
            .DistinctBy(each => each.Name).ToList();
        Check.Equal(names, queues.Select(each => each.Name).ToList());
        Check.Equal([1, 2, 3, 4, 5, 6, 7], queues.Select(each => each.MaxDeliveryCount).ToList());
        var topics = (await All(Administrator.GetTopicsAsync())).Select(each => each.Name)
            .Where(each => each.StartsWith("ts275-")).Distinct().ToList();
        Check.Equal(names.Select(each => $"t{each}").ToList(), topics);

        // Nothing else touches this topic: its pages are exact, of 100, which is the SDK's choice.
        var subscriptions = Enumerable.Range(0, 203).Select(each => each.ToString("000")).ToList();
        foreach (var some in subscriptions.Chunk(20))
        {
            await Task.WhenAll(some.Select(each => Administrator.CreateSubscriptionAsync("ts275-0", each)));
        }
        var (sizes, found) = (new List<int>(), new List<string>());
        await foreach (var page in Administrator.GetSubscriptionsAsync("ts275-0").AsPages())
        {
            sizes.Add(page.Values.Count);
            found.AddRange(page.Values.Select(each => each.SubscriptionName));
        }
        Check.Equal([100, 100, 3], sizes);
        Check.Equal(subscriptions, found);
        Check.Equal(0, (await All(Administrator.GetSubscriptionsAsync("ts275-1"))).Count);
    }

    [Scenario("S278", "counts, sizes and times tell what is there")]
    public async Task CountsSizesAndTimesTellWhatIsThere()
    {
        var before = Now;
        await Administrator.CreateQueueAsync("s278");
        QueueRuntimeProperties fresh = await Administrator.GetQueueRuntimePropertiesAsync("s278");
        Near(before, fresh.CreatedAt, Seconds(10));
        Near(before, fresh.UpdatedAt, Seconds(10));
        Check.Equal([0L, 0L], new List<long> { fresh.SizeInBytes, fresh.TotalMessageCount });

        var client = WithRoot();
        var sender = client.CreateSender("s278");
        await sender.SendMessagesAsync(Numbered(6));
        await sender.SendMessageAsync(OfSize(100 * 1024));
        await sender.ScheduleMessagesAsync(Numbered(2), In(TimeSpan.FromHours(1)));
        var receiver = client.CreateReceiver("s278");
        var messages = await Receive(receiver, 4);
        await receiver.CompleteMessageAsync(messages[0]);
        await receiver.DeadLetterMessageAsync(messages[1]);
        await receiver.DeferMessageAsync(messages[2]);
        QueueRuntimeProperties counts = await Administrator.GetQueueRuntimePropertiesAsync("s278");
        // One is locked, one deferred, three are free: all count as active.
        Check.Equal([5L, 1, 2, 0, 0, 8], new List<long>
        {
            counts.ActiveMessageCount, counts.DeadLetterMessageCount, counts.ScheduledMessageCount,
            counts.TransferMessageCount,
            counts.TransferDeadLetterMessageCount, counts.TotalMessageCount,
        });
        Check.True(counts.SizeInBytes is > 100 * 1024 and < 110 * 1024, $"{counts.SizeInBytes} bytes");
        Near(Now, counts.AccessedAt, Seconds(20));

        await Administrator.UpdateQueueAsync((await Administrator.GetQueueAsync("s278")).Value);
        QueueRuntimeProperties after = await Administrator.GetQueueRuntimePropertiesAsync("s278");
        Check.True(after.UpdatedAt >= fresh.UpdatedAt, $"{after.UpdatedAt:O} is before {fresh.UpdatedAt:O}");
        Check.Equal(fresh.CreatedAt, after.CreatedAt);
        var listed = (await All(Administrator.GetQueuesRuntimePropertiesAsync())).Where(each => each.Name == "s278");
        Check.Equal([8L], listed.Select(each => each.TotalMessageCount).Distinct().ToList());
    }

    [Scenario("S279", "counts of topics and subscriptions")]
    public async Task CountsOfTopicsAndSubscriptions()
    {
        await Administrator.CreateTopicAsync("s279");
        await Administrator.CreateSubscriptionAsync("s279", "a");
        await Administrator.CreateSubscriptionAsync("s279", "b");
        await Administrator.CreateRuleAsync("s279", "b",
            new CreateRuleOptions("fields", new CorrelationRuleFilter("c")));
        var client = WithRoot();
        var sender = client.CreateSender("s279");
        await sender.SendMessagesAsync(Numbered(3));
        await sender.ScheduleMessageAsync(Message(4), In(TimeSpan.FromHours(1)));
        var receiver = client.CreateReceiver("s279", "a");
        var messages = await Receive(receiver, 2);
        await receiver.CompleteMessageAsync(messages[0]);
        await receiver.DeadLetterMessageAsync(messages[1]);

        TopicRuntimeProperties topic = await Administrator.GetTopicRuntimePropertiesAsync("s279");
        // Of filters the SDK tells the numbers that it is given: two of SQL (the default rules are), one of fields.
        Check.Equal([2L, 1, 2, 1], new List<long>
        {
            topic.SubscriptionCount, topic.ScheduledMessageCount, topic.SqlFilterCount, topic.CorrelationFilterCount,
        });
        Check.True(topic.SizeInBytes > 0, "no size");
        Near(Now, topic.CreatedAt, Seconds(20));
        Check.Equal(["a 2 1 1", "b 3 3 0"],
            (await All(Administrator.GetSubscriptionsRuntimePropertiesAsync("s279"))).Select(Counted).ToList());
        Check.Equal("a 2 1 1", Counted((await Administrator.GetSubscriptionRuntimePropertiesAsync("s279", "a")).Value));
        Check.Equal(1, (await All(Administrator.GetTopicsRuntimePropertiesAsync())).Where(each => each.Name == "s279")
            .Distinct().Count());
    }

    static string Counted(SubscriptionRuntimeProperties each) =>
        $"{each.SubscriptionName} {each.TotalMessageCount} {each.ActiveMessageCount} {each.DeadLetterMessageCount}";

    [Scenario("S280", "what is deleted is gone, with its messages and links")]
    public async Task WhatIsDeletedIsGoneWithItsMessagesAndLinks()
    {
        const ServiceBusFailureReason gone = ServiceBusFailureReason.MessagingEntityNotFound;
        await Administrator.CreateQueueAsync("s280");
        var client = Connect(Secured.ConnectionString);
        var sender = client.CreateSender("s280");
        var receiver = client.CreateReceiver("s280");
        await sender.SendMessagesAsync(Numbered(3));
        await ReceiveOne(receiver);
        await Administrator.DeleteQueueAsync("s280");
        await Fails(gone, () => sender.SendMessageAsync(Message(4)));
        await ReceivingFails<ServiceBusException>(receiver, gone);
        Check.True(!await Administrator.QueueExistsAsync("s280"), "s280 is there");

        // One of that name that is made again is another.
        await Administrator.CreateQueueAsync("s280");
        await client.CreateSender("s280").SendMessageAsync(Message("new"));
        var message = await ReceiveOne(client.CreateReceiver("s280"));
        Check.Equal("new 1", $"{message.Body} {message.SequenceNumber}");

        await Administrator.CreateTopicAsync("s280t");
        await Administrator.CreateSubscriptionAsync("s280t", "a");
        await Administrator.CreateSubscriptionAsync("s280t", "b");
        var (a, b, topic) = (client.CreateReceiver("s280t", "a"), client.CreateReceiver("s280t", "b"),
            client.CreateSender("s280t"));
        await ReceiveNothing(a, Seconds(0.1));
        await ReceiveNothing(b, Seconds(0.1));
        await Administrator.DeleteSubscriptionAsync("s280t", "a");
        await ReceivingFails<ServiceBusException>(a, gone);
        await topic.SendMessageAsync(Message(1));
        Check.Equal("1", (await ReceiveOne(b)).Body.ToString());
        await Administrator.DeleteTopicAsync("s280t");
        await ReceivingFails<ServiceBusException>(b, gone);
        await Fails(gone, () => topic.SendMessageAsync(Message(2)));
        Check.True(!await Administrator.TopicExistsAsync("s280t"), "s280t is there");
    }

    [Scenario("S281", "what is not there is not found")]
    public async Task WhatIsNotThereIsNotFound()
    {
        const string none = "s281-no-such";
        await Administrator.CreateTopicAsync("s281");
        await Administrator.CreateSubscriptionAsync("s281", "a");
        foreach (var exists in new[]
        {
            await Administrator.QueueExistsAsync(none), await Administrator.TopicExistsAsync(none),
            await Administrator.SubscriptionExistsAsync("s281", none),
            await Administrator.SubscriptionExistsAsync(none, "a"),
            await Administrator.RuleExistsAsync("s281", "a", none),
        })
        {
            Check.True(!exists, "it exists");
        }
        await Administrator.CreateQueueAsync("s281q");
        QueueProperties gone = await Administrator.GetQueueAsync("s281q");
        await Administrator.DeleteQueueAsync("s281q");
        foreach (var call in new Func<Task>[]
        {
            () => Administrator.GetQueueAsync(none), () => Administrator.GetQueueRuntimePropertiesAsync(none),
            () => Administrator.GetTopicAsync(none), () => Administrator.GetSubscriptionAsync("s281", none),
            () => Administrator.GetSubscriptionAsync(none, "a"), () => Administrator.GetRuleAsync("s281", "a", none),
            () => Administrator.DeleteQueueAsync(none), () => Administrator.DeleteTopicAsync(none),
            () => Administrator.DeleteSubscriptionAsync("s281", none),
            () => Administrator.DeleteRuleAsync("s281", "a", none),
            () => Administrator.CreateSubscriptionAsync(none, "a"),
            () => Administrator.CreateRuleAsync("s281", none, new CreateRuleOptions("r")),
            () => All(Administrator.GetSubscriptionsAsync(none)), () => Administrator.UpdateQueueAsync(gone),
        })
        {
            await Denies(404, "s281", call);
        }
    }

    [Scenario("S282", "what is there cannot be made again")]
    public async Task WhatIsThereCannotBeMadeAgain()
    {
        await Administrator.CreateQueueAsync(new CreateQueueOptions("s282") { MaxDeliveryCount = 7 });
        await Administrator.CreateTopicAsync("s282t");
        await Administrator.CreateSubscriptionAsync("s282t", "a");
        await Administrator.CreateRuleAsync("s282t", "a", new CreateRuleOptions("r", new FalseRuleFilter()));
        await Denies(409, "s282", () => Administrator.CreateQueueAsync("s282"));
        // A queue and a topic share their names, whatever the case.
        await Denies(409, "", () => Administrator.CreateQueueAsync("S282T"));
        await Denies(409, "", () => Administrator.CreateTopicAsync("s282"));
        await Denies(409, "", () => Administrator.CreateSubscriptionAsync("s282t", "A"));
        await Denies(409, "", () => Administrator.CreateRuleAsync("s282t", "a", new CreateRuleOptions("r")));
        Check.Equal(7, (await Administrator.GetQueueAsync("s282")).Value.MaxDeliveryCount);
        Check.Equal(["$Default: true", "r: false"], await RuleAdministration.Rules("s282t", "a"));
    }

    [Scenario("S283", "what cannot be is refused, and changes nothing")]
    public async Task WhatCannotBeIsRefusedAndChangesNothing()
    {
        foreach (var (element, change) in new (string, Action<CreateQueueOptions>)[]
        {
            ("LockDuration", each => each.LockDuration = TimeSpan.FromMinutes(10)),
            ("AutoDeleteOnIdle", each => each.AutoDeleteOnIdle = TimeSpan.FromMinutes(1)),
            ("DuplicateDetectionHistoryTimeWindow",
                each => each.DuplicateDetectionHistoryTimeWindow = TimeSpan.FromDays(7) + Seconds(1)),
            ("Status", each => each.Status = new EntityStatus("Asleep")),
        })
        {
            // Some the SDK refuses itself.
            var failure = await FailureOf(async () =>
            {
                var options = new CreateQueueOptions("s283-wrong");
                change(options);
                await Administrator.CreateQueueAsync(options);
            });
            Check.True(failure is ArgumentException && failure.Message.Contains(element),
                $"{element}: {failure?.ToString() ?? "made"}");
        }
        await Denies(400, "",
            () => Administrator.CreateQueueAsync(new CreateQueueOptions("s283-wrong") { ForwardTo = "s283-no-such" }));
        Check.True(!await Administrator.QueueExistsAsync("s283-wrong"), "s283-wrong is there");

        QueueProperties queue = await Administrator.CreateQueueAsync("s283");
        QueueProperties changed = await Administrator.GetQueueAsync("s283");
        changed.MaxDeliveryCount = 3;
        changed.LockDuration = Seconds(0.5);
        await Denies(400, "LockDuration", () => Administrator.UpdateQueueAsync(changed));
        Described.Same(queue, (await Administrator.GetQueueAsync("s283")).Value);

        TopicProperties topic = await Administrator.CreateTopicAsync("s283t");
        TopicProperties other = await Administrator.GetTopicAsync("s283t");
        other.UserMetadata = "x";
        other.RequiresDuplicateDetection = true;
        await Denies(400, "RequiresDuplicateDetection", () => Administrator.UpdateTopicAsync(other));
        Described.Same(topic, (await Administrator.GetTopicAsync("s283t")).Value);
    }

    [Scenario("S284", "the namespace tells of itself")]
    public async Task TheNamespaceTellsOfItself()
    {
        NamespaceProperties found = await Administrator.GetNamespacePropertiesAsync();
        Check.Equal("secured", found.Name);
        Check.True(found.MessagingSku == MessagingSku.Standard || found.MessagingSku == MessagingSku.Premium,
            $"{found.MessagingSku}");
        Check.True(found.CreatedTime <= Now && found.ModifiedTime >= found.CreatedTime,
            $"{found.CreatedTime:O} {found.ModifiedTime:O}");
    }

    [Scenario("S285", "changes are at work at once")]
    public async Task ChangesAreAtWorkAtOnce()
    {
        QueueProperties queue = await Administrator.CreateQueueAsync("s285");
        var client = Connect(Secured.ConnectionString);
        var sender = client.CreateSender("s285");
        var receiver = client.CreateReceiver("s285");
        await sender.SendMessagesAsync(Numbered(2));
        await receiver.AbandonMessageAsync(await ReceiveOne(receiver));
        queue.MaxDeliveryCount = 2;
        queue = await Administrator.UpdateQueueAsync(queue);
        await receiver.AbandonMessageAsync(await ReceiveOne(receiver));
        Check.Equal("MaxDeliveryCountExceeded",
            (await ReceiveOne(client.CreateReceiver("s285", DeadLetters))).DeadLetterReason);

        queue.LockDuration = Seconds(5);
        queue = await Administrator.UpdateQueueAsync(queue);
        var message = await ReceiveOne(receiver);
        Near(Now + Seconds(5), message.LockedUntil, Seconds(2));
        await receiver.CompleteMessageAsync(message);

        queue.Status = EntityStatus.Disabled;
        queue = await Administrator.UpdateQueueAsync(queue);
        await Fails(ServiceBusFailureReason.MessagingEntityDisabled, () => sender.SendMessageAsync(Message(3)));
        await ReceivingFails<ServiceBusException>(receiver, ServiceBusFailureReason.MessagingEntityDisabled);
        queue.Status = EntityStatus.Active;
        await Administrator.UpdateQueueAsync(queue);
        await sender.SendMessageAsync(Message(4));
        Check.Equal("4", (await ReceiveOne(receiver)).Body.ToString());
    }

    [Scenario("S286", "a queue is made to forward, and not to")]
    public async Task AQueueIsMadeToForwardAndNotTo()
    {
        await Administrator.CreateQueueAsync("s286b");
        await Administrator.CreateQueueAsync("s286d");
        QueueProperties queue = await Administrator.CreateQueueAsync(
            new CreateQueueOptions("s286") { ForwardTo = "s286b", ForwardDeadLetteredMessagesTo = "s286d" });
        await Administrator.CreateTopicAsync("s286t");
        var absolute = $"https://{Secured.Address}/s286b";
        SubscriptionProperties subscription = await Administrator.CreateSubscriptionAsync(
            new CreateSubscriptionOptions("s286t", "a") { ForwardTo = absolute,
                ForwardDeadLetteredMessagesTo = "s286d" });
        // The SDK makes an address of a name, as it sends it; the broker tells it as it was sent.
        foreach (var told in new[] { queue.ForwardTo, subscription.ForwardTo })
        {
            Check.Equal("s286b", new Uri(told).AbsolutePath.Trim('/'));
        }
        foreach (var told in new[] { queue.ForwardDeadLetteredMessagesTo, subscription.ForwardDeadLetteredMessagesTo })
        {
            Check.Equal("s286d", new Uri(told).AbsolutePath.Trim('/'));
        }
        var client = WithRoot();
        await client.CreateSender("s286").SendMessageAsync(Message("queue"));
        await client.CreateSender("s286t").SendMessageAsync(Message("topic"));
        var target = client.CreateReceiver("s286b");
        Check.Equal(["queue", "topic"], Sorted(Bodies(await Receive(target, 2))));

        // What was read and is written unchanged leaves it as it was.
        await Administrator.UpdateQueueAsync((await Administrator.GetQueueAsync("s286")).Value);
        await client.CreateSender("s286").SendMessageAsync(Message("again"));
        Check.Equal("again", (await ReceiveOne(target)).Body.ToString());

        queue = await Administrator.GetQueueAsync("s286");
        queue.ForwardTo = null;
        queue.ForwardDeadLetteredMessagesTo = null;
        await Administrator.UpdateQueueAsync(queue);
        await client.CreateSender("s286").SendMessageAsync(Message("kept"));
        var receiver = client.CreateReceiver("s286");
        await receiver.DeadLetterMessageAsync(await ReceiveOne(receiver));
        Check.Equal("kept", (await ReceiveOne(client.CreateReceiver("s286", DeadLetters))).Body.ToString());
    }

    /// <summary>
    /// Sends requests, signed for the address that the SDK means, by another scheme to another address.
    /// </summary>
    sealed class GoingTo(string scheme, string host, int port) : HttpPipelineSynchronousPolicy
    {
        public override void OnSendingRequest(HttpMessage message)
        {
            (message.Request.Uri.Scheme, message.Request.Uri.Host, message.Request.Uri.Port) = (scheme, host, port);
        }
    }

    [Scenario("S288", "administration on every port, with TLS and without")]
    public async Task AdministrationOnEveryPortWithTlsAndWithout()
    {
        var client = WithRoot();
        foreach (var scheme in new[] { "https", "http" })
        {
            foreach (var (host, port) in new[]
            {
                ("localhost", Secured.AmqpPort), ("localhost", Secured.HttpPort), (Secured.Address, 5671),
                (Secured.Address, 443),
            })
            {
                var options = new ServiceBusAdministrationClientOptions();
                options.AddPolicy(new GoingTo(scheme, host, port), HttpPipelinePosition.BeforeTransport);
                var each = new ServiceBusAdministrationClient(Secured.ConnectionString, options);
                var name = $"s288-{scheme}-{port}";
                await each.CreateQueueAsync(name);
                await client.CreateSender(name).SendMessageAsync(Message(1));
                Check.Equal(1, (await each.GetQueueRuntimePropertiesAsync(name)).Value.ActiveMessageCount);
                await each.DeleteQueueAsync(name);
                Check.True(!await Administrator.QueueExistsAsync(name), $"{name} is there");
            }
        }
        // The emulator's connection string, at its own port and at that of HTTP.
        foreach (var port in new[] { Broker.AmqpPort, Broker.HttpPort })
        {
            var each = new ServiceBusAdministrationClient(
                Broker.ConnectionString.Replace($":{Broker.AmqpPort}", $":{port}"));
            await each.CreateQueueAsync("s288");
            await RoundTrip(Client, "s288");
            await each.DeleteQueueAsync("s288");
        }
    }

    [Scenario("S288", "administration by every version that the SDK knows")]
    public async Task AdministrationByEveryVersionThatTheSdkKnows()
    {
        foreach (var version in Enum.GetValues<ServiceBusAdministrationClientOptions.ServiceVersion>())
        {
            var each = new ServiceBusAdministrationClient(Secured.ConnectionString,
                new ServiceBusAdministrationClientOptions(version));
            var name = $"s288-{version}";
            await each.CreateTopicAsync(new CreateTopicOptions(name) { UserMetadata = $"{version}" });
            await each.CreateSubscriptionAsync(name, "a");
            Check.Equal($"{version}", (await each.GetTopicAsync(name)).Value.UserMetadata);
            Check.Equal(1, (await each.GetTopicRuntimePropertiesAsync(name)).Value.SubscriptionCount);
            Check.Equal(["$Default: true"], await RuleAdministration.Rules(name, "a", each));
            await each.DeleteTopicAsync(name);
        }
    }

    [Scenario("S289", "names may have slashes and other signs")]
    public async Task NamesMayHaveSlashesAndOtherSigns()
    {
        var client = WithRoot();
        foreach (var name in new[] { "s289/orders/new", "s289.a-b_c", "s289/Fault--My.Namespace/Order" })
        {
            await Administrator.CreateQueueAsync(name);
            Check.Equal(name.ToLowerInvariant(),
                (await Administrator.GetQueueAsync(name)).Value.Name.ToLowerInvariant());
            await RoundTrip(client, name);
            await Administrator.DeleteQueueAsync(name);
            Check.True(!await Administrator.QueueExistsAsync(name), $"{name} is there");
        }
    }
}

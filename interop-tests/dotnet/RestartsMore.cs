using System.Transactions;

namespace Interop;

/// <summary>There is one broker to kill: nothing else runs meanwhile.</summary>
class RestartsMore : SecuredScenarios
{
    static async Task KillAndStart()
    {
        await Broker.Kill();
        await Broker.Start();
    }

    async Task SendKeyed(int first, int last)
    {
        for (var body = first; body <= last; body++)
        {
            await Send("s217", new ServiceBusMessage($"{body}") { PartitionKey = $"key {body % 10}" });
        }
    }

    [Scenario("S188 S217 S243", "ids, partitions and transactions survive a kill", Alone = true)]
    public async Task IdsPartitionsAndTransactionsSurviveAKill()
    {
        await Send("s188", new ServiceBusMessage("1") { MessageId = "one" });

        await SendKeyed(1, 50);
        var completing = Client.CreateReceiver("s217");
        await CompleteAll(completing, (await Receive(completing, 50)).Where(each => Partitions.Ordinal(each) == 1));

        await SendNumbered("s243", 2);
        var sender = Client.CreateSender("s243");
        var receiver = Client.CreateReceiver("s243");
        var messages = await Receive(receiver, 2);
        using (var scope = new TransactionScope(TransactionScopeAsyncFlowOption.Enabled))
        {
            await sender.SendMessageAsync(Message("committed"));
            await receiver.CompleteMessageAsync(messages[0]);
            scope.Complete();
        }
        using (var left = new TransactionScope(TransactionScopeAsyncFlowOption.Enabled))
        {
            await sender.SendMessageAsync(Message("lost"));
            await receiver.CompleteMessageAsync(messages[1]);
            using (new TransactionScope(TransactionScopeOption.Suppress, TransactionScopeAsyncFlowOption.Enabled))
            {
                await KillAndStart();
            }
            left.Complete();
            await Check.Throws<TransactionException>(() => Task.Run(left.Dispose));
        }
        Check.Equal(["2", "committed"], Bodies(await PeekAll(Connect().CreateReceiver("s243"))));

        await Send("s188", new ServiceBusMessage("2") { MessageId = "one" },
            new ServiceBusMessage("3") { MessageId = "two" });
        Check.Equal(["1", "3"], Bodies(await PeekAll(Client.CreateReceiver("s188"))));

        // Of each partition the first was completed.
        await SendKeyed(51, 60);
        var partitions = (await PeekAll(Client.CreateReceiver("s217")))
            .ToLookup(Partitions.Partition, Partitions.Ordinal);
        foreach (var numbers in partitions)
        {
            Check.Equal(Range(2, numbers.Count() + 1), numbers.ToList());
        }
        Check.Equal(60, partitions.Sum(each => each.Count() + 1));
    }

    [Scenario("S204", "what is forwarded while the broker is killed arrives once", Alone = true)]
    public async Task WhatIsForwardedWhileTheBrokerIsKilledArrivesOnce()
    {
        var acknowledged = new List<string>();
        var sending = Task.Run(async () =>
        {
            var sender = Client.CreateSender("s204");
            foreach (var body in Texts(1, 200))
            {
                if (await FailureOf(() =>
                    sender.SendMessageAsync(new ServiceBusMessage(body) { Subject = body })) == null)
                {
                    acknowledged.Add(body);
                }
            }
        });
        foreach (var count in new[] { 40, 80, 120 })
        {
            await Check.Eventually(() => Task.FromResult(acknowledged.Count >= count || sending.IsCompleted),
                $"{count} messages are sent");
            await KillAndStart();
        }
        await sending;
        Check.True(acknowledged.Count > 150, $"only {acknowledged.Count} were acknowledged");
        var there = await PeekAll(Client.CreateReceiver("s204b"));
        // A send that is tried again after the kill may be there twice: only as another message of the first queue.
        var numbers = there.Select(each => each.EnqueuedSequenceNumber).ToList();
        Check.Equal(numbers.Count, numbers.Distinct().Count());
        Check.Equal([], acknowledged.Except(Bodies(there)).ToList());
    }

    [Scenario("S290", "what administrators did survives a kill", Alone = true)]
    public async Task WhatAdministratorsDidSurvivesAKill()
    {
        var speaker = new SharedAccessAuthorizationRule("speaker", [AccessRights.Send]);
        QueueProperties queue = await Administrator.CreateQueueAsync(new CreateQueueOptions("s290")
        {
            LockDuration = Seconds(45), RequiresSession = true, UserMetadata = "mine", AuthorizationRules = { speaker },
        });
        queue.MaxDeliveryCount = 3;
        queue = await Administrator.UpdateQueueAsync(queue);
        var created = (await Administrator.GetQueueRuntimePropertiesAsync("s290")).Value.CreatedAt;
        await Administrator.CreateTopicAsync("s290t");
        SubscriptionProperties subscription = await Administrator.CreateSubscriptionAsync(
            new CreateSubscriptionOptions("s290t", "a"),
            new CreateRuleOptions("one", new SqlRuleFilter("n = 1")) { Action = new SqlRuleAction("SET seen = TRUE") });
        await Administrator.CreateQueueAsync("s290-gone");
        await Administrator.CreateSubscriptionAsync(
            new CreateSubscriptionOptions("s290t", "b") { ForwardTo = "s290-gone" });
        await Administrator.DeleteQueueAsync("s290-gone");
        await WithRoot().CreateSender("s290").SendMessageAsync(InSession("x", 1));
        await Secured.Kill();
        await Secured.Start();

        var administrator = new ServiceBusAdministrationClient(Secured.ConnectionString);
        Described.Same(queue, (await administrator.GetQueueAsync("s290")).Value);
        Check.Equal(created, (await administrator.GetQueueRuntimePropertiesAsync("s290")).Value.CreatedAt);
        Described.Same(subscription, (await administrator.GetSubscriptionAsync("s290t", "a")).Value);
        Check.Equal(["one: n = 1; SET seen = TRUE"], await RuleAdministration.Rules("s290t", "a", administrator));
        Check.True(!await administrator.QueueExistsAsync("s290-gone"), "s290-gone is there");
        // What it forwarded to is gone: its messages go nowhere, and the broker starts all the same.
        Check.True(await administrator.SubscriptionExistsAsync("s290t", "b"), "no subscription b");
        var client = WithRoot();
        Check.Equal(["1"], Bodies(await Receive(await client.AcceptSessionAsync("s290", "x"), 1)));
        await WithKey("speaker", speaker.PrimaryKey, "s290").CreateSender("s290").SendMessageAsync(InSession("y", 2));
        Check.Equal(["2"], Bodies(await Receive(await client.AcceptSessionAsync("s290", "y"), 1)));
        await client.CreateSender("s290t").SendMessagesAsync([With("n", 2), With("n", 1)]);
        Check.Equal(["1"], Bodies(await PeekAll(client.CreateReceiver("s290t", "a"))));
        Check.Equal(["2", "1"], Bodies(await Receive(client.CreateReceiver("s290t", "b", DeadLetters), 2)));
    }

    /// <summary>The broker force-detaches links as it ends: the SDK's own reconnection brings them back.</summary>
    [Scenario("S308", "a sender and a receiver survive a stop in good order", Alone = true)]
    public async Task ASenderAndAReceiverSurviveAStopInGoodOrder()
    {
        var sender = Client.CreateSender("s308");
        var receiver = Client.CreateReceiver("s308");
        await sender.SendMessageAsync(Message("before"));
        await receiver.CompleteMessageAsync(await ReceiveOne(receiver));
        await Broker.Stop();
        await Broker.Start();
        await sender.SendMessageAsync(Message("after"));
        var after = await ReceiveOne(receiver);
        Check.Equal("after", after.Body.ToString());
        await receiver.CompleteMessageAsync(after);
        await ReceiveNothing(receiver);
        Check.Equal([], Bodies(await PeekAll(receiver)));
    }
}

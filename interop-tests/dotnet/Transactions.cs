using System.Transactions;

namespace Interop;

class Transactions : MoreScenarios
{
    static TransactionScope Scope() => new(TransactionScopeAsyncFlowOption.Enabled);

    /// <summary>Links share an AMQP session, so that a transaction may span entities.</summary>
    ServiceBusClient Spanning()
    {
        var options = Options();
        options.EnableCrossEntityTransactions = true;
        return Connect(options: options);
    }

    static ServiceBusMessage Keyed(string key, string body) => new(body) { PartitionKey = key };

    /// <summary>
    /// Checks that messages are locked still, under the locks they were received with, and completes them.
    /// </summary>
    static async Task AreLockedStill(ServiceBusReceiver receiver,
        params IEnumerable<ServiceBusReceivedMessage> messages)
    {
        await ReceiveNothing(receiver);
        await CompleteAll(receiver, messages);
        foreach (var number in Numbers(messages))
        {
            Check.True(!Numbers(await PeekAll(receiver)).Contains(number), $"{number} is still there");
        }
    }

    [Scenario("S230", "a transaction has one partition")]
    public async Task ATransactionHasOnePartition()
    {
        var sender = Client.CreateSender("s230");
        foreach (var second in new[] { Keyed("other", "second"), Message("second") })
        {
            using var scope = Scope();
            await sender.SendMessageAsync(Keyed("one", "first"));
            await Refuses("partition", () => sender.SendMessageAsync(second));
            scope.Complete();
            await Check.Throws<TransactionException>(() => Task.Run(scope.Dispose));
        }
        var receiver = Client.CreateReceiver("s230");
        Check.Equal([], Bodies(await PeekAll(receiver)));
        using (var scope = Scope())
        {
            await sender.SendMessageAsync(Keyed("one", "first"));
            await sender.SendMessageAsync(Keyed("one", "second"));
            scope.Complete();
        }
        Check.Equal(["first", "second"], Bodies(await Receive(receiver, 2)));
    }

    [Scenario("S231", "what is sent in a transaction arrives when it is committed")]
    public async Task WhatIsSentInATransactionArrivesWhenItIsCommitted()
    {
        var sender = Client.CreateSender("s231");
        var receiver = Client.CreateReceiver("s231");
        using (var scope = Scope())
        {
            await sender.SendMessageAsync(Message("first"));
            await sender.SendMessagesAsync([Message("second")]);
            using (new TransactionScope(TransactionScopeOption.Suppress, TransactionScopeAsyncFlowOption.Enabled))
            {
                await sender.SendMessageAsync(Message("outside"));
                Check.Equal(["outside"], Bodies(await Receive(receiver, 1)));
                await ReceiveNothing(receiver);
                Check.Equal(["outside"], Bodies(await PeekAll(receiver)));
            }
            scope.Complete();
        }
        var messages = await PeekAll(receiver);
        Check.Equal(["outside", "first", "second"], Bodies(messages));
        Check.Equal(Range(1, 3), Numbers(messages));
        // Received while it was outside, a second before the commit.
        Check.True(messages[1].EnqueuedTime - messages[0].EnqueuedTime > Seconds(0.9), "enqueued before the commit");
        Check.Equal(["first", "second"], Bodies(await Receive(receiver, 2)));
    }

    [Scenario("S232", "what is sent in a transaction that is rolled back never was")]
    public async Task WhatIsSentInATransactionThatIsRolledBackNeverWas()
    {
        var sender = Client.CreateSender("s232");
        using (Scope())
        {
            await sender.SendMessagesAsync(Numbered(2));
            await sender.SendMessageAsync(Message(3));
        }
        await sender.SendMessageAsync(Message("outside"));
        var receiver = Client.CreateReceiver("s232");
        var messages = await Receive(receiver, 1);
        Check.Equal(["outside"], Bodies(messages));
        Check.Equal([1L], Numbers(messages));
        await ReceiveNothing(receiver);
    }

    [Scenario("S233", "a completion takes effect when the transaction is committed")]
    public async Task ACompletionTakesEffectWhenTheTransactionIsCommitted()
    {
        await SendNumbered("s233", 1);
        var receiver = Client.CreateReceiver("s233");
        var message = await ReceiveOne(receiver);
        using (var scope = Scope())
        {
            await receiver.CompleteMessageAsync(message);
            using (new TransactionScope(TransactionScopeOption.Suppress, TransactionScopeAsyncFlowOption.Enabled))
            {
                Check.Equal(["1"], Bodies(await PeekAll(receiver)));
                await ReceiveNothing(Client.CreateReceiver("s233"));
            }
            scope.Complete();
        }
        Check.Equal([], Bodies(await PeekAll(receiver)));
    }

    [Scenario("S234", "a completion that is rolled back leaves the lock")]
    public async Task ACompletionThatIsRolledBackLeavesTheLock()
    {
        await SendNumbered("s234", 1);
        var receiver = Client.CreateReceiver("s234");
        var message = await ReceiveOne(receiver);
        using (Scope())
        {
            await receiver.CompleteMessageAsync(message);
        }
        await AreLockedStill(receiver, message);
    }

    static async Task Settle(ServiceBusReceiver receiver, List<ServiceBusReceivedMessage> three)
    {
        await receiver.AbandonMessageAsync(three[0]);
        await receiver.DeferMessageAsync(three[1]);
        await receiver.DeadLetterMessageAsync(three[2], "why");
    }

    [Scenario("S235", "every settlement takes effect with the commit or not at all")]
    public async Task EverySettlementTakesEffectWithTheCommitOrNotAtAll()
    {
        await SendNumbered("s235", 6);
        var receiver = Client.CreateReceiver("s235");
        var dead = Client.CreateReceiver("s235", DeadLetters);
        var messages = await Receive(receiver, 6);
        using (var scope = Scope())
        {
            await Settle(receiver, messages[..3]);
            using (new TransactionScope(TransactionScopeOption.Suppress, TransactionScopeAsyncFlowOption.Enabled))
            {
                Check.Equal([], Bodies(await PeekAll(dead)));
                await ReceiveNothing(receiver);
            }
            scope.Complete();
        }
        var abandoned = await ReceiveOne(receiver);
        Check.Equal("1", abandoned.Body.ToString());
        Check.Equal(1, Count(abandoned));
        var deferred = await receiver.ReceiveDeferredMessageAsync(messages[1].SequenceNumber);
        Check.Equal("2", deferred.Body.ToString());
        var letter = await ReceiveOne(dead);
        Check.Equal("3", letter.Body.ToString());
        Check.Equal("why", letter.DeadLetterReason);

        using (Scope())
        {
            await Settle(receiver, messages[3..]);
        }
        var seen = (await PeekAll(receiver)).Where(each => each.SequenceNumber > 3).ToList();
        Check.Equal(Texts(4, 6), Bodies(seen));
        seen.ForEach(each => Check.Equal(ServiceBusMessageState.Active, each.State));
        Check.Equal(["3"], Bodies(await PeekAll(dead)));
        await AreLockedStill(receiver, messages[3..]);
    }

    [Scenario("S236", "a message is completed and another sent, or neither")]
    public async Task AMessageIsCompletedAndAnotherSentOrNeither()
    {
        await RefusesTwoEntities();
        await Moves(Spanning(), "s236", "s236b");
    }

    /// <summary>Without cross-entity transactions the coordinator has an AMQP session of its own.</summary>
    async Task RefusesTwoEntities()
    {
        await SendNumbered("s236", 1);
        var receiver = Client.CreateReceiver("s236");
        var message = await ReceiveOne(receiver);
        using (var scope = Scope())
        {
            await Client.CreateSender("s236b").SendMessageAsync(Message("neither"));
            await Refuses("Local transactions cannot span", () => receiver.CompleteMessageAsync(message));
            scope.Complete();
            await Check.Throws<TransactionException>(() => Task.Run(scope.Dispose));
        }
        Check.Equal([], Bodies(await PeekAll(Client.CreateReceiver("s236b"))));
        Check.Equal(["1"], Bodies(await PeekAll(receiver)));
        await receiver.CompleteMessageAsync(message);
        Check.Equal([], Bodies(await PeekAll(receiver)));
    }

    [Scenario("S248", "a transaction spans entities where the client says so")]
    public Task ATransactionSpansEntitiesWhereTheClientSaysSo() => Moves(Spanning(), "s248", "s248b");

    /// <summary>
    /// Completes messages of one queue and sends to another, in a transaction that ends well and in one that does not.
    /// </summary>
    async Task Moves(ServiceBusClient connection, string from, string to)
    {
        await SendNumbered(from, 2);
        var receiver = connection.CreateReceiver(from);
        var messages = await Receive(receiver, 2);
        var sender = connection.CreateSender(to);
        using (var scope = Scope())
        {
            await sender.SendMessageAsync(Message("moved"));
            await receiver.CompleteMessageAsync(messages[0]);
            scope.Complete();
        }
        using (Scope())
        {
            await receiver.CompleteMessageAsync(messages[1]);
            await sender.SendMessageAsync(Message("not moved"));
        }
        var there = Client.CreateReceiver(to);
        Check.Equal(["moved"], Bodies(await Receive(there, 1)));
        await ReceiveNothing(there);
        Check.Equal(["2"], Bodies(await PeekAll(receiver)));
        await AreLockedStill(receiver, messages[1]);
    }

    [Scenario("S239", "a transaction has a hundred messages and no more")]
    public async Task ATransactionHasAHundredMessagesAndNoMore()
    {
        var sender = Client.CreateSender("s239");
        using (Scope())
        {
            foreach (var message in Numbered(100))
            {
                await sender.SendMessageAsync(message);
            }
            await Refuses("more than 100 messages in a single transaction",
                () => sender.SendMessageAsync(Message(101)));
        }
        var receiver = Client.CreateReceiver("s239");
        Check.Equal([], Bodies(await PeekAll(receiver)));
        using (var scope = Scope())
        {
            foreach (var message in Numbered(100))
            {
                await sender.SendMessageAsync(message);
            }
            scope.Complete();
        }
        var messages = await Receive(receiver, 100);
        Check.Equal(Texts(1, 100), Bodies(messages));
        Check.Equal(Range(1, 100), Numbers(messages));
    }

    [Scenario("S240", "schedules, cancellations and settlements of deferred messages take part")]
    public async Task SchedulesCancellationsAndSettlementsOfDeferredMessagesTakePart()
    {
        var sender = Client.CreateSender("s240");
        var receiver = Client.CreateReceiver("s240");
        await sender.SendMessagesAsync(Numbered(2));
        foreach (var message in await Receive(receiver, 2))
        {
            await receiver.DeferMessageAsync(message);
        }
        var later = In(TimeSpan.FromHours(1));
        var deferred = await receiver.ReceiveDeferredMessagesAsync([1, 2]);
        using (Scope())
        {
            await sender.ScheduleMessageAsync(Message("not scheduled"), later);
            await receiver.CompleteMessageAsync(deferred[0]);
        }
        Check.Equal(["1", "2"], Bodies(await PeekAll(receiver)));

        using (var scope = Scope())
        {
            await sender.ScheduleMessageAsync(Message("scheduled"), later);
            await sender.ScheduleMessagesAsync([Message("scheduled too")], later);
            await receiver.CompleteMessageAsync(deferred[1]);
            using (new TransactionScope(TransactionScopeOption.Suppress, TransactionScopeAsyncFlowOption.Enabled))
            {
                Check.Equal(["1", "2"], Bodies(await PeekAll(receiver)));
            }
            scope.Complete();
        }
        var seen = await PeekAll(receiver);
        Check.Equal(["1", "scheduled", "scheduled too"], Bodies(seen));
        Check.Equal(ServiceBusMessageState.Scheduled, seen[2].State);
        // What was rolled back left the lock as it was.
        await receiver.CompleteMessageAsync(deferred[0]);
        Check.Equal(["scheduled", "scheduled too"], Bodies(await PeekAll(receiver)));
    }

    [Scenario("S241", "a transaction may mix sessions")]
    public async Task ATransactionMayMixSessions()
    {
        var sender = Client.CreateSender("s241");
        await sender.SendMessageAsync(InSession("x", "x1"));
        var x = await Client.AcceptSessionAsync("s241", "x");
        var first = await ReceiveOne(x);
        using (var scope = Scope())
        {
            await x.CompleteMessageAsync(first);
            await sender.SendMessageAsync(InSession("y", "y1"));
            await sender.SendMessageAsync(InSession("x", "x2"));
            await sender.SendMessageAsync(InSession("y", "y2"));
            scope.Complete();
        }
        Check.Equal(["x2"], Bodies(await Receive(x, 1)));
        Check.Equal(["y1", "y2"], Bodies(await Receive(await Client.AcceptSessionAsync("s241", "y"), 2)));
        Check.Equal(["x2"], Bodies(await PeekAll(x)));
    }

    [Scenario("S242", "a transaction sends to topics and queues")]
    public async Task ATransactionSendsToTopicsAndQueues()
    {
        var spanning = Spanning();
        var topic = spanning.CreateSender("s242");
        var queue = spanning.CreateSender("s242b");
        foreach (var isCommitted in new[] { false, true })
        {
            using var scope = Scope();
            await topic.SendMessageAsync(With("n", 1));
            await queue.SendMessageAsync(Message("queued"));
            await topic.SendMessageAsync(With("n", 2));
            if (isCommitted)
            {
                scope.Complete();
            }
        }
        (ServiceBusReceiver Receiver, string[] Wanted)[] all =
        [
            (Client.CreateReceiver("s242", "a"), ["1", "2"]), (Client.CreateReceiver("s242", "b"), ["1"]),
            (Client.CreateReceiver("s242b"), ["queued"]),
        ];
        foreach (var (receiver, wanted) in all)
        {
            var seen = await PeekAll(receiver);
            Check.Equal(wanted, Bodies(seen));
            Check.Equal(Range(1, wanted.Length), Numbers(seen));
        }
    }

    [Scenario("S245", "a lock that ends within a transaction spoils it, or does not matter")]
    public async Task ALockThatEndsWithinATransactionSpoilsItOrDoesNotMatter()
    {
        await SendNumbered("s245", 1);
        var receiver = Client.CreateReceiver("s245");
        var other = Connect().CreateReceiver("s245");
        var message = await ReceiveOne(receiver);
        var again = new List<ServiceBusReceivedMessage>();
        var failure = await FailureOf(async () =>
        {
            using var scope = Scope();
            await receiver.CompleteMessageAsync(message);
            using (new TransactionScope(TransactionScopeOption.Suppress, TransactionScopeAsyncFlowOption.Enabled))
            {
                again.AddRange(await other.ReceiveMessagesAsync(1, Seconds(7)));
            }
            scope.Complete();
        });
        if (failure == null)
        {
            Check.Equal([], Bodies(again));
            Check.Equal([], Bodies(await PeekAll(other)));
            return;
        }
        if (again.Count == 0)
        {
            again = await Receive(other, 1);
        }
        Check.Equal(["1"], Bodies(again));
        Check.Equal(1, Count(again[0]));
        Check.True(message.LockToken != again[0].LockToken, "the lock token is the same");
    }

    [Scenario("S246", "two transactions of a connection know nothing of each other")]
    public async Task TwoTransactionsOfAConnectionKnowNothingOfEachOther()
    {
        var sender = Client.CreateSender("s246");
        using var one = new CommittableTransaction();
        using var other = new CommittableTransaction();
        for (var index = 1; index <= 3; index++)
        {
            await SendIn(one, sender, Message($"one {index}"));
            await SendIn(other, sender, Message($"other {index}"));
        }
        other.Rollback();
        await Task.Factory.FromAsync(one.BeginCommit, one.EndCommit, null);
        Check.Equal(["one 1", "one 2", "one 3"], Bodies(await PeekAll(Client.CreateReceiver("s246"))));
    }

    static async Task SendIn(Transaction transaction, ServiceBusSender sender, ServiceBusMessage message)
    {
        using var scope = new TransactionScope(transaction, TransactionScopeAsyncFlowOption.Enabled);
        await sender.SendMessageAsync(message);
        scope.Complete();
    }

    [Scenario("S247", "a queue that is full spoils a transaction")]
    public async Task AQueueThatIsFullSpoilsATransaction()
    {
        var spanning = Spanning();
        var (full, other) = (spanning.CreateSender("s247"), spanning.CreateSender("s247b"));
        var failure = await FailureOf(async () =>
        {
            using var scope = Scope();
            for (var n = 0; n < 15; n++)
            {
                await full.SendMessageAsync(OfSize(100 * 1024));
            }
            await other.SendMessageAsync(Message(1));
            scope.Complete();
        });
        Check.True(failure?.ToString().Contains("maximum entity size") == true, $"{failure}");
        Check.Equal([], Bodies(await PeekAll(Client.CreateReceiver("s247"))));
        Check.Equal([], Bodies(await PeekAll(Client.CreateReceiver("s247b"))));
    }

    [Scenario("S250", "what is scheduled for now comes in its turn")]
    public async Task WhatIsScheduledForNowComesInItsTurn()
    {
        var sender = Client.CreateSender("s250");
        using (var scope = Scope())
        {
            await sender.SendMessageAsync(Message("sent"));
            await sender.ScheduleMessageAsync(Message("scheduled"), Now);
            await sender.SendMessageAsync(Message("sent last"));
            scope.Complete();
        }
        Check.Equal(["sent", "scheduled", "sent last"], Bodies(await Receive(Client.CreateReceiver("s250"), 3)));
    }
}

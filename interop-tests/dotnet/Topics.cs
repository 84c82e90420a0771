using System.Diagnostics;

namespace Interop;

class Topics : Scenarios
{
    ServiceBusReceiver At(string topic, string subscription) => Client.CreateReceiver(topic, subscription);

    ServiceBusReceiver DeadAt(string topic, string subscription) =>
        Client.CreateReceiver(topic, subscription, DeadLetters);

    [Scenario("S141", "every subscription has its own copy, with its own number and the topic's")]
    public async Task EverySubscriptionHasItsOwnCopy()
    {
        for (var n = 1; n <= 5; n += 1)
        {
            var message = With("n", n);
            message.Subject = "subject";
            await Send("s141", message);
        }
        foreach (var subscription in new[] { "a", "b", "odd" })
        {
            int[] wanted = subscription == "odd" ? [1, 3, 5] : [1, 2, 3, 4, 5];
            var messages = await Receive(At("s141", subscription), wanted.Length);
            Check.Equal(Range(1, wanted.Length), Numbers(messages));
            Check.Equal(wanted.Select(n => (long)n), messages.Select(each => each.EnqueuedSequenceNumber));
            Check.Equal(wanted.Select(n => $"{n}"), Bodies(messages));
            Check.Equal(wanted.Select(n => (object)n), messages.Select(each => each.ApplicationProperties["n"]));
            Check.True(messages.All(each => each.Subject == "subject" && each.ApplicationProperties.Count == 1),
                "a copy that is changed");
            foreach (var message in messages)
            {
                Near(Now, message.EnqueuedTime, Seconds(20));
            }
        }
        await ReceiveNothing(At("s141", "odd"));
    }

    [Scenario("S142", "a topic without subscriptions takes what it gets")]
    public async Task ATopicWithoutSubscriptionsTakesWhatItGets()
    {
        await Send("s142", Message(1));
        await SendNumbered("s142", 2);
        Check.Equal(0, (await Administration.GetTopicRuntimePropertiesAsync("s142")).Value.SubscriptionCount);
    }

    [Scenario("S143", "what happens at one subscription does not at another")]
    public async Task WhatHappensAtOneSubscriptionDoesNotAtAnother()
    {
        await SendNumbered("s143", 3);
        var a = At("s143", "a");
        var b = At("s143", "b");
        var messages = await Receive(a, 3);
        await a.CompleteMessageAsync(messages[0]);
        await a.DeferMessageAsync(messages[1]);
        await a.AbandonMessageAsync(messages[2]);
        var others = await Receive(b, 3);
        Check.Equal(Texts(1, 3), Bodies(others));
        Check.Equal([0, 0, 0], Counts(others));
        var again = await ReceiveOne(a);
        Check.Equal("3", again.Body.ToString());
        Check.Equal(1, Count(again));
        await Fails(ServiceBusFailureReason.MessageNotFound, () => b.ReceiveDeferredMessageAsync(2));
        Check.Equal("2", (await a.ReceiveDeferredMessageAsync(2)).Body.ToString());
        Check.Equal(6, messages.Concat(others).Select(each => each.LockToken).Distinct().Count());
    }

    [Scenario("S144", "a subscription has a dead-letter queue of its own")]
    public async Task ASubscriptionHasADeadLetterQueueOfItsOwn()
    {
        await Send("s144", Message(1));
        var a = At("s144", "a");
        await a.DeadLetterMessageAsync(await ReceiveOne(a), "why", "because");
        var letter = await ReceiveOne(DeadAt("s144", "a"));
        Check.Equal("1", letter.Body.ToString());
        Check.Equal("why", letter.DeadLetterReason);
        Check.Equal("because", letter.DeadLetterErrorDescription);
        Check.Equal("1", (await ReceiveOne(At("s144", "b"))).Body.ToString());
        Check.Equal(0, (await PeekAll(DeadAt("s144", "b"))).Count);
    }

    [Scenario("S145", "a subscription may have sessions")]
    public async Task ASubscriptionMayHaveSessions()
    {
        await Send("s145", InSession("x", 1), InSession("y", 2), InSession("x", 3));
        Check.Equal(["x", "y", "x"], (await Receive(At("s145", "plain"), 3)).Select(each => each.SessionId));
        var x = await Client.AcceptSessionAsync("s145", "s", "x");
        Check.Equal(["1", "3"], Bodies(await Receive(x, 2)));
        await x.SetSessionStateAsync(new BinaryData(new byte[] { 1 }));
        await x.RenewSessionLockAsync();
        Near(Now + Seconds(60), x.SessionLockedUntil, Seconds(5));
        var next = await Client.AcceptNextSessionAsync("s145", "s");
        Check.Equal("y", next.SessionId);
        Check.Equal(["2"], Bodies(await Receive(next, 1)));
        await x.CloseAsync();
        var again = await Connect().AcceptNextSessionAsync("s145", "s");
        Check.Equal("x", again.SessionId);
        Check.Equal([1], (await again.GetSessionStateAsync()).ToArray());
        Check.Equal([0, 0], Counts(await Receive(again, 2)));
    }

    [Scenario("S146", "a message without a session is a dead letter where sessions are required")]
    public async Task AMessageWithoutASessionIsADeadLetter()
    {
        await Send("s146", Message(1));
        Check.Equal("1", (await ReceiveOne(At("s146", "plain"))).Body.ToString());
        var letter = await ReceiveOne(DeadAt("s146", "s"));
        Check.Equal("1", letter.Body.ToString());
        Check.Equal("Session ID is null.", letter.DeadLetterReason);
    }

    [Scenario("S147", "messages scheduled on a topic come to its subscriptions when they are due")]
    public async Task MessagesScheduledOnATopicComeWhenTheyAreDue()
    {
        var sender = Client.CreateSender("s147");
        var time = In(Seconds(6));
        await sender.ScheduleMessageAsync(Message("scheduled"), time);
        await sender.SendMessageAsync(new ServiceBusMessage("sent") { ScheduledEnqueueTime = time });
        ServiceBusReceiver[] receivers = [At("s147", "a"), At("s147", "b")];
        foreach (var receiver in receivers)
        {
            Check.Equal(0, (await PeekAll(receiver)).Count);
        }
        foreach (var receiver in receivers)
        {
            var messages = await Receive(receiver, 2);
            Check.Equal(["scheduled", "sent"], Bodies(messages).Order());
            Check.True(messages.All(each => each.EnqueuedTime >= time), "enqueued before its time");
            Check.Equal([time, time], messages.Select(each => each.ScheduledEnqueueTime));
            await ReceiveNothing(receiver);
        }
    }

    [Scenario("S148", "messages scheduled on a topic are cancelled")]
    public async Task MessagesScheduledOnATopicAreCancelled()
    {
        var sender = Client.CreateSender("s148");
        var numbers = await sender.ScheduleMessagesAsync(Numbered(3), In(Seconds(3)));
        await sender.CancelScheduledMessageAsync(numbers[0]);
        await sender.CancelScheduledMessagesAsync(numbers.Skip(1));
        await Fails(ServiceBusFailureReason.MessageNotFound, () => sender.CancelScheduledMessageAsync(numbers[0]));
        await ReceiveNothing(At("s148", "a"), Seconds(4));
    }

    [Scenario("S149", "nothing is received from a topic or sent to a subscription")]
    public async Task NothingIsReceivedFromATopicOrSentToASubscription()
    {
        await Refuses("", () => Client.CreateReceiver("s149").ReceiveMessageAsync(Deadline));
        await Refuses("", () => Client.CreateSender("s149/Subscriptions/a").SendMessageAsync(Message(1)));
        Check.Equal(0, (await PeekAll(At("s149", "a"))).Count);
    }

    [Scenario("S150", "an unknown subscription is not found")]
    public async Task AnUnknownSubscriptionIsNotFound()
    {
        foreach (var receiver in new[] { At("s150", "no-such"), At("no-such", "a") })
        {
            await Fails(ServiceBusFailureReason.MessagingEntityNotFound, () => receiver.ReceiveMessageAsync(Deadline),
                "could not be found");
        }
    }

    [Scenario("S151", "names of topics and subscriptions do not depend on case")]
    public async Task NamesDoNotDependOnCase()
    {
        await Send("S151", Message(1));
        Check.Equal("1", (await ReceiveOne(At("s151", "mixed"))).Body.ToString());
    }

    [Scenario("S152", "locks of a subscription expire and are renewed as its own properties say")]
    public async Task LocksOfASubscriptionExpireAndAreRenewed()
    {
        await Send("s152", Message(1));
        var a = At("s152", "a");
        var message = await ReceiveOne(a);
        var until = message.LockedUntil;
        await ReceiveNothing(a, Seconds(2));
        await a.RenewMessageLockAsync(message);
        var renewed = Stopwatch.GetTimestamp();
        Check.True(message.LockedUntil > until, $"{message.LockedUntil:O} is not after {until:O}");
        var again = await ReceiveOne(a);
        Check.True(Stopwatch.GetElapsedTime(renewed) >= Seconds(4), "before the lock's end");
        Check.Equal(1, Count(again));
        Check.Equal("MaxDeliveryCountExceeded", (await ReceiveOne(DeadAt("s152", "a"))).DeadLetterReason);
        Check.Equal(0, Count(await ReceiveOne(At("s152", "b"))));
    }

    [Scenario("S153", "a message lives as long as topic and subscription allow")]
    public async Task AMessageLivesAsLongAsTopicAndSubscriptionAllow()
    {
        await Send("s153", Message(1));
        var begin = Stopwatch.GetTimestamp();
        var isShort = ReceiveOne(DeadAt("s153", "short"));
        var isKept = ReceiveOne(DeadAt("s153", "keep"));
        Check.True(await Task.WhenAny(isShort, isKept) == isShort,
            "the subscription's time to live, though shorter, did not count");
        Check.Equal("TTLExpiredException", (await isShort).DeadLetterReason);
        Check.Equal("TTLExpiredException", (await isKept).DeadLetterReason);
        Check.True(Stopwatch.GetElapsedTime(begin) > Seconds(2.5), "before its time");
        await ReceiveNothing(At("s153", "drop"));
        Check.Equal(0, (await PeekAll(DeadAt("s153", "drop"))).Count);
    }

    [Scenario("S154", "a batch and a large message are copied byte for byte")]
    public async Task ABatchAndALargeMessageAreCopied()
    {
        await SendNumbered("s154", 100);
        await Send("s154", OfSize(200 * 1024));
        string[] subscriptions = ["a", "b", "c"];
        for (var index = 0; index < 3; index += 1)
        {
            var receiver = At("s154", subscriptions[index]);
            var messages = await Receive(receiver, 101);
            Check.Equal(Texts(1, 100), Bodies(messages[..100]));
            Check.Equal(Pattern(200 * 1024), messages[100].Body.ToArray());
            await CompleteAll(receiver, messages);
            Check.Equal(0, (await PeekAll(receiver)).Count);
            foreach (var other in subscriptions[(index + 1)..])
            {
                Check.Equal(101, (await PeekAll(At("s154", other))).Count);
            }
        }
    }

    [Scenario("S155", "what is disabled is refused")]
    public async Task WhatIsDisabledIsRefused()
    {
        await Fails(ServiceBusFailureReason.MessagingEntityDisabled, () => Send("s155", Message(1)));
        await ReceiveNothing(At("s155", "a"));
        await Send("s155b", Message(1));
        Check.Equal("1", (await ReceiveOne(At("s155b", "on"))).Body.ToString());
        await Fails(ServiceBusFailureReason.MessagingEntityDisabled,
            () => At("s155b", "off").ReceiveMessageAsync(Deadline));
    }

    [Scenario("S156", "a topic that is full takes more when its subscriptions have been emptied")]
    public async Task ATopicThatIsFullTakesMoreWhenItsSubscriptionsAreEmptied()
    {
        var sender = Client.CreateSender("s156");
        async Task<bool> Takes()
        {
            try
            {
                await sender.SendMessageAsync(OfSize(100 * 1024));
                return true;
            }
            catch (ServiceBusException error) when (error.Reason == ServiceBusFailureReason.QuotaExceeded)
            {
                return false;
            }
        }
        var sent = 0;
        while (sent < 30 && await Takes())
        {
            sent += 1;
        }
        Check.True(sent is > 0 and < 30, $"{sent} were taken");
        foreach (var subscription in new[] { "a", "b" })
        {
            var receiver = At("s156", subscription);
            await CompleteAll(receiver, await Receive(receiver, sent));
        }
        await Check.Eventually(Takes, "there is room", Seconds(5));
    }

    [Scenario("S157", "subscriptions are peeked like queues, and their sessions are listed")]
    public async Task SubscriptionsArePeekedLikeQueues()
    {
        await Send("s157", InSession("x", 1), InSession("y", 2), InSession("x", 3));
        var a = At("s157", "a");
        await a.DeferMessageAsync((await Receive(a, 2))[0]);
        var seen = await PeekAll(a);
        Check.Equal(Texts(1, 3), Bodies(seen));
        Check.Equal([ServiceBusMessageState.Deferred, ServiceBusMessageState.Active, ServiceBusMessageState.Active],
            seen.Select(each => each.State));
        Check.Equal(["1", "3"], Bodies(await PeekAll(await Client.AcceptSessionAsync("s157", "s", "x"))));
        Check.Equal(["x", "y"], await Sessions.Listed(Client.GetMessageSessionsAsync("s157", "s")));
    }
}

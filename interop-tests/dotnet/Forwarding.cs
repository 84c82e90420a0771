namespace Interop;

class Forwarding : Scenarios
{
    static List<long> Origins(IEnumerable<ServiceBusReceivedMessage> messages) =>
        [.. messages.Select(each => each.EnqueuedSequenceNumber)];

    [Scenario("S191", "what is forwarded has the number of its place and that of its origin")]
    public async Task WhatIsForwardedHasTheNumberOfItsPlaceAndThatOfItsOrigin()
    {
        var before = Now;
        await Send("s191b", Message(1), Message(2));
        await Send("s191", Message(3), Message(4));
        await Client.CreateSender("s191").SendMessagesAsync([Message(5)]);
        var messages = await Receive(Client.CreateReceiver("s191b"), 5);
        Check.Equal(Texts(1, 5), Bodies(messages));
        Check.Equal(Range(1, 5), Numbers(messages));
        Check.Equal(Range(1, 3), Origins(messages[2..]));
        messages.ForEach(each => Near(before, each.EnqueuedTime, Seconds(5)));
    }

    [Scenario("S192", "the number of the origin is that of the first queue")]
    public async Task TheNumberOfTheOriginIsThatOfTheFirstQueue()
    {
        await Send("s192c", Message("c"));
        await Send("s192b", Message("b"));
        await Send("s192", Message("a"));
        var messages = await Receive(Client.CreateReceiver("s192c"), 3);
        Check.Equal(["c", "b", "a"], Bodies(messages));
        Check.Equal(Range(1, 3), Numbers(messages));
        Check.Equal(1, Origins(messages)[2]);
    }

    [Scenario("S193", "four times and no more")]
    public async Task FourTimesAndNoMore()
    {
        await Send("s193", Message("five"));
        await Send("s193b", Message("four"));
        Check.Equal(["four"], Bodies(await Receive(Client.CreateReceiver("s193f"), 1)));
        var letter = await ReceiveOne(Client.CreateReceiver("s193e", DeadLetters));
        Check.Equal("five", letter.Body.ToString());
        Check.Equal("MaxTransferHopCountExceeded", letter.DeadLetterReason);
    }

    [Scenario("S194", "a queue that forwards is not received from")]
    public async Task AQueueThatForwardsIsNotReceivedFrom()
    {
        const string text = "auto-forwarding";
        await Refuses(text, () => Client.CreateReceiver("s194").ReceiveMessageAsync());
        await Refuses(text, () => Client.CreateReceiver("s194").PeekMessageAsync());
    }

    [Scenario("S195", "what cannot be forwarded is a dead letter")]
    public async Task WhatCannotBeForwardedIsADeadLetter()
    {
        await Send("s195", Message(1));
        var receiver = Client.CreateReceiver("s195", DeadLetters);
        var letter = await ReceiveOne(receiver);
        Check.Equal("1", letter.Body.ToString());
        Check.True(letter.DeadLetterReason is { Length: > 0 }, "no reason");
        await receiver.CompleteMessageAsync(letter);
        Check.Equal([], Bodies(await PeekAll(receiver)));
    }

    [Scenario("S196", "what does not fit is a dead letter")]
    public async Task WhatDoesNotFitIsADeadLetter()
    {
        var sender = Client.CreateSender("s196");
        foreach (var subject in Texts(1, 15))
        {
            var message = OfSize(100 * 1024);
            message.Subject = subject;
            await sender.SendMessageAsync(message);
        }
        var there = await PeekAll(Client.CreateReceiver("s196b"));
        var dead = await PeekAll(Client.CreateReceiver("s196", DeadLetters));
        Check.True(there.Count > 0 && dead.Count > 0, $"{there.Count} and {dead.Count}");
        Check.Equal(Range(1, 15), there.Concat(dead).Select(each => long.Parse(each.Subject)).Order());
    }

    [Scenario("S197", "a subscription forwards what its rules take")]
    public async Task ASubscriptionForwardsWhatItsRulesTake()
    {
        await Client.CreateSender("s197").SendMessagesAsync([With("n", 1), With("n", 2), With("n", 3)]);
        var messages = await Receive(Client.CreateReceiver("s197b"), 2);
        Check.Equal(["2", "3"], Bodies(messages));
        Check.Equal(Range(1, 2), Numbers(messages));
        Check.Equal(Range(2, 3), Origins(messages));
    }

    [Scenario("S198", "a queue forwards to a topic")]
    public async Task AQueueForwardsToATopic()
    {
        await Send("s198", With("color", "red"), With("color", "blue"));
        Check.Equal(["red", "blue"], Bodies(await Receive(Client.CreateReceiver("s198b", "all"), 2)));
        Check.Equal(["red"], Bodies(await PeekAll(Client.CreateReceiver("s198b", "red"))));
    }

    [Scenario("S199", "dead letters are forwarded and say where they come from")]
    public async Task DeadLettersAreForwardedAndSayWhereTheyComeFrom()
    {
        await Client.CreateSender("s199").SendMessagesAsync([Message("dead"), Message("abandoned")]);
        var receiver = Client.CreateReceiver("s199");
        var messages = await Receive(receiver, 2);
        await receiver.DeadLetterMessageAsync(messages[0], "why", "because");
        await receiver.AbandonMessageAsync(messages[1]);
        await Send("s199", new ServiceBusMessage("expired") { TimeToLive = Seconds(1) });
        var letters = await Receive(Client.CreateReceiver("s199b"), 3);
        Check.Equal(["dead", "abandoned", "expired"], Bodies(letters));
        Check.Equal(["why", "MaxDeliveryCountExceeded", "TTLExpiredException"],
            letters.Select(each => each.DeadLetterReason));
        Check.Equal("because", letters[0].DeadLetterErrorDescription);
        Check.Equal(Range(1, 3), Numbers(letters));
        letters.ForEach(each => Check.Equal("s199", each.DeadLetterSource));
        Check.Equal(0, (await Administration.GetQueueRuntimePropertiesAsync("s199")).Value.DeadLetterMessageCount);
    }

    [Scenario("S200", "dead letters of a subscription are forwarded")]
    public async Task DeadLettersOfASubscriptionAreForwarded()
    {
        await Send("s200", Message(1));
        var receiver = Client.CreateReceiver("s200", "a");
        await receiver.DeadLetterMessageAsync(await ReceiveOne(receiver), "why", "because");
        var letter = await ReceiveOne(Client.CreateReceiver("s200b"));
        Check.Equal("1", letter.Body.ToString());
        Check.Equal("why", letter.DeadLetterReason);
        Check.True(letter.DeadLetterSource.Contains("s200", StringComparison.OrdinalIgnoreCase),
            letter.DeadLetterSource);
    }

    [Scenario("S201", "a scheduled message is forwarded when it is due")]
    public async Task AScheduledMessageIsForwardedWhenItIsDue()
    {
        var sender = Client.CreateSender("s201");
        var time = In(Seconds(4));
        await sender.ScheduleMessageAsync(Message("due"), time);
        await sender.CancelScheduledMessageAsync(await sender.ScheduleMessageAsync(Message("cancelled"), time));
        var receiver = Client.CreateReceiver("s201b");
        Check.Equal([], Bodies(await PeekAll(receiver)));
        Check.Equal(["due"], Bodies(await Receive(receiver, 1)));
        Check.True(Now >= time, $"{Now:O} is before {time:O}");
        await ReceiveNothing(receiver);
    }

    [Scenario("S202", "what is forwarded needs a session where sessions are required")]
    public async Task WhatIsForwardedNeedsASessionWhereSessionsAreRequired()
    {
        await Send("s202", InSession("x", "with"), Message("without"));
        Check.Equal(["with"], Bodies(await Receive(await Client.AcceptSessionAsync("s202b", "x"), 1)));
        var letters = await PeekAll(Client.CreateReceiver("s202", DeadLetters));
        Check.Equal(["without"], Bodies(letters));
        Check.Equal("Session ID is null.", letters[0].DeadLetterReason);
    }

    [Scenario("S203", "what is forwarded may be a duplicate")]
    public async Task WhatIsForwardedMayBeADuplicate()
    {
        foreach (var queue in new[] { "s203", "s203", "s203b" })
        {
            await Send(queue, new ServiceBusMessage(queue) { MessageId = "one" });
        }
        Check.Equal(["s203"], Bodies(await PeekAll(Client.CreateReceiver("s203b"))));
    }
}

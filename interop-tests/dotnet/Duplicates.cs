namespace Interop;

class Duplicates : Scenarios
{
    static ServiceBusMessage Identified(string id, string body) => new(body) { MessageId = id };

    [Scenario("S181", "a duplicate is accepted and takes no number")]
    public async Task ADuplicateIsAcceptedAndTakesNoNumber()
    {
        var sender = Client.CreateSender("s181");
        foreach (var body in Texts(1, 5))
        {
            await sender.SendMessageAsync(Identified("one", body));
        }
        await sender.SendMessageAsync(Identified("other", "6"));
        var messages = await PeekAll(Client.CreateReceiver("s181"));
        Check.Equal(["1", "6"], Bodies(messages));
        Check.Equal(Range(1, 2), Numbers(messages));
    }

    [Scenario("S182", "what is forgotten is no duplicate", Long = true)]
    public async Task WhatIsForgottenIsNoDuplicate()
    {
        var sender = Client.CreateSender("s182");
        var receiver = Client.CreateReceiver("s182");
        await sender.SendMessageAsync(Identified("one", "1"));
        await receiver.CompleteMessageAsync(await ReceiveOne(receiver));
        await sender.SendMessageAsync(Identified("one", "2"));
        await ReceiveNothing(receiver, Seconds(22));
        await sender.SendMessageAsync(Identified("one", "3"));
        Check.Equal(["3"], Bodies(await Receive(receiver, 1)));
    }

    [Scenario("S183", "duplicates within a batch")]
    public async Task DuplicatesWithinABatch()
    {
        var sender = Client.CreateSender("s183");
        using var batch = await sender.CreateMessageBatchAsync();
        foreach (var (id, body) in new[] { ("1", "a"), ("2", "b"), ("1", "c"), ("3", "d"), ("3", "e") })
        {
            Check.True(batch.TryAddMessage(Identified(id, body)), $"the batch has no room for {body}");
        }
        await sender.SendMessagesAsync(batch);
        var messages = await Receive(Client.CreateReceiver("s183"), 3);
        Check.Equal(["a", "b", "d"], Bodies(messages));
        Check.Equal(Range(1, 3), Numbers(messages));
    }

    [Scenario("S184", "what is completed, deferred or dead is remembered")]
    public async Task WhatIsCompletedDeferredOrDeadIsRemembered()
    {
        string[] ids = ["completed", "deferred", "dead"];
        var messages = ids.Select(id => Identified(id, id)).ToArray();
        await Send("s184", messages);
        var receiver = Client.CreateReceiver("s184");
        var received = await Receive(receiver, 3);
        await receiver.CompleteMessageAsync(received[0]);
        await receiver.DeferMessageAsync(received[1]);
        await receiver.DeadLetterMessageAsync(received[2]);
        await Send("s184", messages);
        await ReceiveNothing(receiver);
        var rest = await PeekAll(receiver);
        Check.Equal(["deferred"], Bodies(rest));
        Check.Equal(ServiceBusMessageState.Deferred, rest[0].State);
        Check.Equal(["dead"], Bodies(await PeekAll(Client.CreateReceiver("s184", DeadLetters))));
    }

    [Scenario("S185", "messages without an id are no duplicates")]
    public async Task MessagesWithoutAnIdAreNoDuplicates()
    {
        await Send("s185", [.. Numbered(3)]);
        Check.Equal(Texts(1, 3), Bodies(await Receive(Client.CreateReceiver("s185"), 3)));
    }

    [Scenario("S186", "a scheduled message has its id already")]
    public async Task AScheduledMessageHasItsIdAlready()
    {
        var sender = Client.CreateSender("s186");
        await sender.ScheduleMessageAsync(Identified("one", "scheduled"), In(Seconds(2)));
        await sender.SendMessageAsync(Identified("one", "sent"));
        var receiver = Client.CreateReceiver("s186");
        Check.Equal(["scheduled"], Bodies(await Receive(receiver, 1)));
        await ReceiveNothing(receiver);
    }

    [Scenario("S187", "a topic has one memory for all its subscriptions")]
    public async Task ATopicHasOneMemoryForAllItsSubscriptions()
    {
        await Send("s187", Identified("one", "1"), Identified("one", "2"));
        Check.Equal(["1"], Bodies(await PeekAll(Client.CreateReceiver("s187", "a"))));
        Check.Equal(["1"], Bodies(await PeekAll(Client.CreateReceiver("s187", "b"))));
    }

    [Scenario("S189", "an id is the queue's and not the session's")]
    public async Task AnIdIsTheQueuesAndNotTheSessions()
    {
        var first = Identified("one", "1");
        first.SessionId = "x";
        var second = Identified("one", "2");
        second.SessionId = "y";
        await Send("s189", first, second);
        Check.Equal(["1"], Bodies(await Receive(await Client.AcceptSessionAsync("s189", "x"), 1)));
        Check.Equal(["1"], Bodies(await PeekAll(Client.CreateReceiver("s189"))));
    }
}

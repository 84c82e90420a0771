namespace Interop;

/// <summary>There is one broker to kill: nothing else runs meanwhile.</summary>
class Restarts : Scenarios
{
    static async Task KillAndStart()
    {
        await Broker.Kill();
        await Broker.Start();
    }

    [Scenario("S72 S73 S74 S75", "what was acknowledged survives the broker", Alone = true)]
    public async Task WhatWasAcknowledgedSurvives()
    {
        // Clients that outlive the broker (S74).
        var sender = Client.CreateSender("s74");
        var receiver = Client.CreateReceiver("s74");
        await sender.SendMessageAsync(Message("before"));
        await receiver.CompleteMessageAsync(await ReceiveOne(receiver));

        await using (var before = Connect())
        {
            await before.CreateSender("s72").SendMessagesAsync(Numbered(5));
            var settling = before.CreateReceiver("s72");
            var messages = await Receive(settling, 3);
            await settling.CompleteMessageAsync(messages[0]);
            await settling.DeferMessageAsync(messages[1], new Dictionary<string, object> { ["attempt"] = 1 });
            await settling.DeadLetterMessageAsync(messages[2], "why");
            await before.CreateSender("s72").ScheduleMessageAsync(Message("later"), In(TimeSpan.FromHours(1)));
            await before.CreateSender("s73").ScheduleMessageAsync(Message("due"), In(Seconds(2)));
            await before.CreateSender("s75").SendMessageAsync(Message("abandoned"));
            var abandoning = before.CreateReceiver("s75");
            await abandoning.AbandonMessageAsync(await ReceiveOne(abandoning));
        }
        await ReceiveNothing(receiver, Seconds(2));
        await KillAndStart();

        var after = Connect();
        var looking = after.CreateReceiver("s72");
        var seen = await PeekAll(looking);
        Check.Equal([2L, 4, 5, 6], Numbers(seen));
        Check.Equal(["2", "4", "5", "later"], Bodies(seen));
        Check.Equal(
            [ServiceBusMessageState.Deferred, ServiceBusMessageState.Active, ServiceBusMessageState.Active,
                ServiceBusMessageState.Scheduled],
            seen.Select(each => each.State));
        Check.Equal<object>(1, (await looking.ReceiveDeferredMessageAsync(2)).ApplicationProperties["attempt"]);
        var letter = await ReceiveOne(after.CreateReceiver("s72", DeadLetters));
        Check.Equal("3", letter.Body.ToString());
        Check.Equal("why", letter.DeadLetterReason);
        await after.CreateSender("s72").SendMessageAsync(Message("next"));
        Check.Equal([4L, 5, 7], Numbers(await Receive(looking, 3)));
        Check.Equal("due", (await ReceiveOne(after.CreateReceiver("s73"), Seconds(3))).Body.ToString());

        await sender.SendMessageAsync(Message("after"));
        Check.Equal("after", (await ReceiveOne(receiver)).Body.ToString());

        // In good order, with clients connected (S75): the control fails when the broker's exit code is not 0.
        await Broker.Stop();
        await Broker.Start();
        var message = await ReceiveOne(Connect().CreateReceiver("s75"));
        Check.Equal("abandoned", message.Body.ToString());
        Check.Equal(1, Count(message));
    }

    [Scenario("S138 S139", "sessions survive, and their locks do not", Alone = true)]
    public async Task SessionsSurvive()
    {
        await using (var before = Connect())
        {
            await before.CreateSender("s138").SendMessagesAsync(
                [InSession("x", "deferred"), InSession("x", "left"), InSession("x", "there"), InSession("z", "other")]);
            var holder = await before.AcceptSessionAsync("s138", "x");
            await holder.DeferMessageAsync((await Receive(holder, 2))[0]);
            await holder.SetSessionStateAsync(new BinaryData(new byte[] { 1 }));
            await (await before.AcceptSessionAsync("s138", "y")).SetSessionStateAsync(new BinaryData(new byte[] { 2 }));
        }
        await Send("s139", InSession("open", 1), InSession("open", 2));
        var open = await Client.AcceptSessionAsync("s139", "open");
        var held = await ReceiveOne(open);
        await KillAndStart();

        await Sessions.IsLost(() => open.CompleteMessageAsync(held));
        Check.Equal(Texts(1, 2), Bodies(await Receive(await Connect().AcceptSessionAsync("s139", "open"), 2)));

        var after = Connect();
        var x = await after.AcceptSessionAsync("s138", "x");
        Check.Equal([1], (await x.GetSessionStateAsync()).ToArray());
        Check.Equal([2], (await (await after.AcceptSessionAsync("s138", "y")).GetSessionStateAsync()).ToArray());
        var messages = await Receive(x, 2);
        Check.Equal(["left", "there"], Bodies(messages));
        Check.Equal(Range(2, 3), Numbers(messages));
        Check.Equal("deferred", (await x.ReceiveDeferredMessageAsync(1)).Body.ToString());
        Check.Equal("z", (await after.AcceptNextSessionAsync("s138")).SessionId);
        await after.CreateSender("s138").SendMessageAsync(InSession("x", "next"));
        Check.Equal(5, (await ReceiveOne(x)).SequenceNumber);
    }

    [Scenario("S158 S170", "subscriptions and their rules survive", Alone = true)]
    public async Task SubscriptionsAndTheirRulesSurvive()
    {
        await using (var before = Connect())
        {
            await before.CreateSender("s158").SendMessagesAsync(Numbered(10));
            var a = before.CreateReceiver("s158", "a");
            var copies = await Receive(a, 5);
            await CompleteAll(a, copies[..3]);
            await a.DeferMessageAsync(copies[3]);
            await a.DeadLetterMessageAsync(copies[4]);
            await before.CreateSender("s158").ScheduleMessageAsync(Message("scheduled"), In(Seconds(3)));
            var rules = before.CreateRuleManager("s170", "a");
            await rules.DeleteRuleAsync("$Default");
            await rules.CreateRuleAsync("one", new SqlRuleFilter("n = 1"));
        }
        await KillAndStart();

        var after = Client.CreateReceiver("s158", "a");
        var messages = await Receive(after, 6);
        Check.Equal(["6", "7", "8", "9", "10", "scheduled"], Bodies(messages));
        Check.Equal(Range(6, 11), Numbers(messages));
        Check.Equal(Range(6, 10), messages[..5].Select(each => each.EnqueuedSequenceNumber));
        Check.Equal("4", (await after.ReceiveDeferredMessageAsync(4)).Body.ToString());
        Check.Equal("5", (await ReceiveOne(Client.CreateReceiver("s158", "a", DeadLetters))).Body.ToString());

        Check.Equal(["one"], (await Rules.Listed(Client.CreateRuleManager("s170", "a"))).Keys);
        await Send("s170", With("n", 2), With("n", 1));
        Check.Equal(["1"], Bodies(await PeekAll(Client.CreateReceiver("s170", "a"))));
    }
}

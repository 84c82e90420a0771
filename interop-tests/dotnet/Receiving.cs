using System.Diagnostics;

namespace Interop;

class Receiving : Scenarios
{
    [Scenario("S18", "a locked message is nobody else's")]
    public async Task ALockedMessageIsNobodyElses()
    {
        await SendNumbered("s18", 1);
        var receiver = Client.CreateReceiver("s18");
        var other = Client.CreateReceiver("s18");
        var message = await ReceiveOne(receiver);
        await ReceiveNothing(other);
        await receiver.CompleteMessageAsync(message);
        await ReceiveNothing(other);
    }

    [Scenario("S19", "receive and delete leaves nothing behind")]
    public async Task ReceiveAndDeleteLeavesNothingBehind()
    {
        await SendNumbered("s19", 3);
        var receiver = Client.CreateReceiver("s19", Destructive);
        Check.Equal(Texts(1, 3), Bodies(await Receive(receiver, 3)));
        Check.Equal(0, (await PeekAll(receiver)).Count);
    }

    [Scenario("S31", "what a closed receiver held comes back when its lock ends")]
    public async Task WhatAClosedReceiverHeldComesBack()
    {
        await SendNumbered("s31", 3);
        var other = Connect();
        await ReceiveOne(other.CreateReceiver("s31"));
        await other.DisposeAsync();
        var receiver = Client.CreateReceiver("s31");
        var rest = await Receive(receiver, 2, Seconds(3));
        Check.Equal(Texts(2, 3), Bodies(rest));
        await CompleteAll(receiver, rest);
        var held = await ReceiveOne(receiver, Seconds(15));
        Check.Equal("1", held.Body.ToString());
        Check.Equal(1, Count(held));
    }

    [Scenario("S32", "what was prefetched and not asked for is given back")]
    public async Task WhatWasPrefetchedIsGivenBack()
    {
        await SendNumbered("s32", 10);
        var other = Client.CreateReceiver("s32", Prefetching(10));
        var first = await ReceiveOne(other);
        var receiver = Client.CreateReceiver("s32");
        // All ten are on their way to the first receiver.
        await ReceiveNothing(receiver);
        await other.CompleteMessageAsync(first);
        await other.CloseAsync();
        var messages = await Receive(receiver, 9, Seconds(10));
        Check.Equal(Texts(2, 10), Bodies(messages));
        Check.Equal(Enumerable.Repeat(0, 9), Counts(messages));
    }

    [Scenario("S33", "a receive on an empty queue waits and the next one works")]
    public async Task AReceiveOnAnEmptyQueueWaits()
    {
        var receiver = Client.CreateReceiver("s33");
        // The first receive opens the link as well.
        await ReceiveNothing(receiver, Seconds(0.1));
        var begin = Stopwatch.GetTimestamp();
        await ReceiveNothing(receiver, Seconds(2));
        var waited = Stopwatch.GetElapsedTime(begin).TotalSeconds;
        Check.True(waited is >= 1.9 and <= 5, $"{waited} s");
        await Send("s33", Message("late"));
        var late = await ReceiveOne(receiver);
        Check.Equal("late", late.Body.ToString());
        await receiver.CompleteMessageAsync(late);
    }

    [Scenario("S34", "a waiting receive gets what is sent")]
    public async Task AWaitingReceiveGetsWhatIsSent()
    {
        var receiver = Client.CreateReceiver("s34");
        await ReceiveNothing(receiver, Seconds(0.1));
        var receiving = receiver.ReceiveMessageAsync(Seconds(15));
        await Connect().CreateSender("s34").SendMessageAsync(Message("now"));
        Check.Equal("now", (await receiving.WaitAsync(Seconds(2)))?.Body.ToString());
    }

    [Scenario("S35", "two processors share 200 messages")]
    public async Task TwoProcessorsShare200Messages()
    {
        await SendNumbered("s35", 200);
        var work = new Work();
        var processors = new List<ServiceBusProcessor>();
        for (var each = 0; each < 2; each += 1)
        {
            var processor = Own(Connect()
                .CreateProcessor("s35", new ServiceBusProcessorOptions { MaxConcurrentCalls = 5 }));
            processor.ProcessMessageAsync += work.Take;
            processor.ProcessErrorAsync += work.Failed;
            await processor.StartProcessingAsync();
            processors.Add(processor);
        }
        // Handlers that return complete what they were given; then nothing is there.
        var looking = Client.CreateReceiver("s35");
        await Check.Eventually(async () => work.Count >= 200 && await looking.PeekMessageAsync(1) == null,
            "200 messages are completed");
        foreach (var processor in processors)
        {
            await processor.StopProcessingAsync();
        }
        Check.Equal(Texts(1, 200), work.Bodies.OrderBy(int.Parse).ToList());
        Check.Equal([], work.Complaints);
    }

    [Scenario("S36", "a receive brings no more than it asked for")]
    public async Task AReceiveBringsNoMoreThanItAskedFor()
    {
        await SendNumbered("s36", 10);
        var receiver = Client.CreateReceiver("s36");
        var messages = (await receiver.ReceiveMessagesAsync(4, Seconds(5))).ToList();
        Check.True(messages.Count is >= 1 and <= 4, $"{messages.Count} messages");
        messages.AddRange(await Receive(receiver, 10 - messages.Count));
        Check.Equal(Range(1, 10), Numbers(messages));
    }

    [Scenario("S38", "dead letters are peeked, completed, abandoned and deferred")]
    public async Task DeadLettersArePeekedCompletedAbandonedAndDeferred()
    {
        await SendNumbered("s38", 3);
        var receiver = Client.CreateReceiver("s38");
        foreach (var message in await Receive(receiver, 3))
        {
            await receiver.DeadLetterMessageAsync(message);
        }
        var dead = Client.CreateReceiver("s38", DeadLetters);
        Check.Equal(Texts(1, 3), Bodies(await PeekAll(dead)));
        var letters = await Receive(dead, 3);
        await dead.CompleteMessageAsync(letters[0]);
        await dead.AbandonMessageAsync(letters[1]);
        await dead.DeferMessageAsync(letters[2]);
        var again = await ReceiveOne(dead);
        Check.Equal("2", again.Body.ToString());
        Check.Equal(letters[1].DeliveryCount, again.DeliveryCount);
        Check.Equal("3", (await dead.ReceiveDeferredMessageAsync(letters[2].SequenceNumber)).Body.ToString());
        Check.Equal(Texts(2, 3), Bodies(await PeekAll(dead)));
    }

    [Scenario("S39", "nothing is sent to a dead-letter queue")]
    public Task NothingIsSentToADeadLetterQueue() =>
        Refuses("", () => Client.CreateSender("s39/$DeadLetterQueue").SendMessageAsync(Message(1)));

    [Scenario("S40", "dead letters neither expire nor are dead-lettered")]
    public async Task DeadLettersNeitherExpireNorAreDeadLettered()
    {
        await Send("s40", Message(1));
        var receiver = Client.CreateReceiver("s40");
        await receiver.DeadLetterMessageAsync(await ReceiveOne(receiver));
        var dead = Client.CreateReceiver("s40", DeadLetters);
        var letter = await ReceiveOne(dead);
        await ReceiveNothing(receiver, Seconds(4));
        for (var count = 0; count < 12; count += 1)
        {
            await dead.AbandonMessageAsync(letter);
            letter = await ReceiveOne(dead);
        }
        await dead.CompleteMessageAsync(letter);
        Check.Equal(0, (await PeekAll(dead)).Count);
    }
}

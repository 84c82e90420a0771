namespace Interop;

/// <summary>Much at once.</summary>
class Volume : MoreScenarios
{
    [Scenario("S309", "a thousand unsettled on one link")]
    public async Task AThousandUnsettledOnOneLink()
    {
        await SendNumbered("s309", 1000);
        var receiver = Client.CreateReceiver("s309");
        var messages = await Receive(receiver, 1000);
        // What arrives between two receives the SDK releases: it comes again after what follows it.
        Check.Equal(Range(1, 1000), Sorted(Numbers(messages)));
        Check.Equal([0], Counts(messages).Distinct().ToList());
        var shuffled = messages.ToArray();
        new Random(309).Shuffle(shuffled);
        await Task.WhenAll(shuffled.Select(each => receiver.CompleteMessageAsync(each)));
        Check.Equal([], Bodies(await PeekAll(receiver)));
    }

    [Scenario("S310", "a batch is filled until the SDK says that it is full")]
    public async Task ABatchIsFilledUntilTheSdkSaysThatItIsFull()
    {
        var sender = Client.CreateSender("s310");
        var receiver = Client.CreateReceiver("s310");
        var before = 0;
        foreach (var size in new[] { 1000, 10 })
        {
            using var batch = await sender.CreateMessageBatchAsync();
            var sent = new List<string>();
            while (batch.TryAddMessage(Message(Body(sent.Count + 1, size))))
            {
                sent.Add(Body(sent.Count + 1, size));
            }
            Check.True(sent.Count >= 800, $"only {sent.Count}");
            await sender.SendMessagesAsync(batch);
            var there = Bodies(await PeekAll(receiver));
            Check.Equal(sent, there[before..]);
            before = there.Count;
        }
    }

    static string Body(int number, int size) => number.ToString().PadLeft(size, '0');

    [Scenario("S311", "messages up to the largest")]
    public async Task MessagesUpToTheLargest()
    {
        var sender = Client.CreateSender("s311");
        var receiver = Client.CreateReceiver("s311", Destructive);
        await sender.SendMessageAsync(OfSize(1_000_000));
        Check.Equal(Pattern(1_000_000), (await ReceiveOne(receiver)).Body.ToArray());
        using var batch = await sender.CreateMessageBatchAsync();
        Check.True(batch.TryAddMessage(OfSize(1_000_000)), "no room in a batch");
        await sender.SendMessagesAsync(batch);
        Check.Equal(Pattern(1_000_000), (await ReceiveOne(receiver)).Body.ToArray());
        using var empty = await sender.CreateMessageBatchAsync();
        Check.True(!empty.TryAddMessage(OfSize(1_100_000)), "a batch takes what is too large");
        await Fails(ServiceBusFailureReason.MessageSizeExceeded, () => sender.SendMessageAsync(OfSize(1_100_000)));
        Check.Equal([], Bodies(await PeekAll(receiver)));
    }

    [Scenario("S312", "a message of 20 mebibytes")]
    public async Task AMessageOf20Mebibytes()
    {
        await Send("s312", OfSize(20 << 20));
        Check.Equal(Pattern(20 << 20), (await ReceiveOne(Client.CreateReceiver("s312", Destructive))).Body.ToArray());
    }

    [Scenario("S313", "what was prefetched goes back in its order")]
    public async Task WhatWasPrefetchedGoesBackInItsOrder()
    {
        await SendNumbered("s313", 300);
        var receiver = Client.CreateReceiver("s313", Prefetching(100));
        var first = await Receive(receiver, 30);
        Check.Equal(Range(1, 30), Numbers(first));
        await CompleteAll(receiver, first);
        await receiver.CloseAsync();
        var rest = await Receive(Connect().CreateReceiver("s313"), 270);
        Check.Equal(Range(31, 300), Numbers(rest));
        Check.Equal([0], Counts(rest).Distinct().ToList());
    }

    [Scenario("S319", "the SDK's stream of messages goes on")]
    public async Task TheSdksStreamOfMessagesGoesOn()
    {
        await SendNumbered("s319", 50);
        var receiver = Client.CreateReceiver("s319");
        using var end = new CancellationTokenSource(Deadline);
        var numbers = new List<long>();
        var failure = await FailureOf(async () =>
        {
            await foreach (var message in receiver.ReceiveMessagesAsync(end.Token))
            {
                numbers.Add(message.SequenceNumber);
                await receiver.CompleteMessageAsync(message);
                if (numbers.Count == 50)
                {
                    await Send("s319", Message(51));
                }
                else if (numbers.Count == 51)
                {
                    end.Cancel();
                }
            }
        });
        Check.True(failure is OperationCanceledException, $"{failure}");
        Check.Equal(Range(1, 51), numbers);
        Check.Equal([], Bodies(await PeekAll(receiver)));
    }

    [Scenario("S330", "a full queue takes a batch whole or not at all")]
    public async Task AFullQueueTakesABatchWholeOrNotAtAll()
    {
        var sender = Client.CreateSender("s330");
        async Task<int> UntilRefused(Func<Task> call)
        {
            for (var taken = 0; taken < 30; taken++)
            {
                if (await FailureOf(call) is { } failure)
                {
                    Check.Equal(ServiceBusFailureReason.QuotaExceeded, (failure as ServiceBusException)?.Reason);
                    return taken;
                }
            }
            throw new CheckException("nothing is refused");
        }
        var large = OfSize(100 * 1024);
        var batches = await UntilRefused(() => sender.SendMessagesAsync([large, large, large]));
        var scheduled = await UntilRefused(() => sender.ScheduleMessageAsync(large, In(TimeSpan.FromHours(1))));
        Check.Equal(3 * batches + scheduled, (await PeekAll(Client.CreateReceiver("s330"))).Count);
    }
}

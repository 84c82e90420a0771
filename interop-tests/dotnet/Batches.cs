namespace Interop;

/// <summary>Batches that are filled to their bound.</summary>
class Batches : Scenarios
{
    [Scenario("S533", "a batch that TryAddMessage has filled is taken whole, at each size of message")]
    public async Task Filled()
    {
        var queue = await CreateQueue("s533");
        var sender = Client.CreateSender(queue);
        var receiver = Client.CreateReceiver(queue, Destructive);
        foreach (var size in new[] { 1000, 17, 90_000 })
        {
            using var batch = await sender.CreateMessageBatchAsync();
            Check.True(batch.MaxSizeInBytes >= 262_144, $"{batch.MaxSizeInBytes} bytes");
            var count = 0;
            // Of 17 bytes there would be ten thousands: some thousand show the same.
            while (count < 3000 && batch.TryAddMessage(
                new ServiceBusMessage(new BinaryData(Pattern(size))) { MessageId = $"{count}" }))
            {
                count++;
            }
            Check.Equal(count, batch.Count);
            Check.True(batch.SizeInBytes <= batch.MaxSizeInBytes,
                $"{batch.SizeInBytes} of {batch.MaxSizeInBytes} bytes");
            await sender.SendMessagesAsync(batch);
            var messages = await Receive(receiver, count);
            Check.Equal(Enumerable.Range(0, count).Select(each => $"{each}").ToList(),
                messages.Select(each => each.MessageId).ToList());
            Check.True(messages.All(each => each.Body.ToMemory().Span.SequenceEqual(Pattern(size))), "a body differs");
        }
    }

    [Scenario("S534", "the largest message that fits is taken alone and in a batch, and one byte more is not")]
    public async Task Edge()
    {
        var queue = await CreateQueue("s534");
        var sender = Client.CreateSender(queue);
        var receiver = Client.CreateReceiver(queue, Destructive);
        using var batch = await sender.CreateMessageBatchAsync();
        // The largest body that a batch takes: between nothing and its bound.
        var (fits, fails) = (0, (int)batch.MaxSizeInBytes);
        while (fails - fits > 1)
        {
            using var trial = await sender.CreateMessageBatchAsync();
            var middle = (fits + fails) / 2;
            (fits, fails) = trial.TryAddMessage(OfSize(middle)) ? (middle, fails) : (fits, middle);
        }
        Check.True(batch.MaxSizeInBytes - fits < 200, $"only {fits} of {batch.MaxSizeInBytes} bytes fit");
        Check.True(!batch.TryAddMessage(OfSize(fails)), "too large a message was added");
        Check.Equal(0, batch.Count);
        Check.True(batch.TryAddMessage(OfSize(fits)), "the largest message was not added");
        Check.True(!batch.TryAddMessage(Message(1)), "a second message was added");
        await sender.SendMessagesAsync(batch);
        Check.Equal(Pattern(fits), (await ReceiveOne(receiver)).Body.ToArray());
        // Alone it is smaller than in the batch, whose section it is.
        await sender.SendMessageAsync(OfSize(fits));
        Check.Equal(fits, (await ReceiveOne(receiver)).Body.ToArray().Length);
        await Fails(ServiceBusFailureReason.MessageSizeExceeded,
            () => sender.SendMessageAsync(OfSize((int)batch.MaxSizeInBytes + 1)));
        await Fails(ServiceBusFailureReason.MessageSizeExceeded,
            () => sender.SendMessagesAsync(Enumerable.Range(0, 5).Select(_ => OfSize(fits / 4))));
        await sender.SendMessageAsync(Message("after"));
        Check.Equal("after", (await ReceiveOne(receiver)).Body.ToString());
        await ReceiveNothing(receiver);
    }

    [Scenario("S535", "a batch with a bound of its own, an empty one, and one that is sent twice")]
    public async Task Own()
    {
        var queue = await CreateQueue("s535");
        var sender = Client.CreateSender(queue);
        using var small = await sender.CreateMessageBatchAsync(
            new CreateMessageBatchOptions { MaxSizeInBytes = 10_000 });
        Check.Equal(10_000, small.MaxSizeInBytes);
        var count = 0;
        while (small.TryAddMessage(OfSize(1000)))
        {
            count++;
        }
        Check.True(count is 8 or 9, $"{count} messages of 1,000 bytes in 10,000");
        await sender.SendMessagesAsync(small);
        await sender.SendMessagesAsync(small);
        using (var empty = await sender.CreateMessageBatchAsync())
        {
            await sender.SendMessagesAsync(empty);
        }
        await Check.Throws<ArgumentOutOfRangeException>(async () =>
            await sender.CreateMessageBatchAsync(
                new CreateMessageBatchOptions { MaxSizeInBytes = small.MaxSizeInBytes * 1_000_000 }));
        Check.Equal(2 * count, (await PeekAll(Client.CreateReceiver(queue))).Count);
    }
}

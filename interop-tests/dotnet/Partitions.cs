namespace Interop;

class Partitions : MoreScenarios
{
    /// <summary>The partition of a message is the topmost 16 bits of its number.</summary>
    public static long Partition(ServiceBusReceivedMessage message) => message.SequenceNumber >>> 48;

    /// <summary>The number of a message within its partition.</summary>
    public static long Ordinal(ServiceBusReceivedMessage message) => message.SequenceNumber & ((1L << 48) - 1);

    static ServiceBusMessage Keyed(string key, int body) => new($"{body}") { PartitionKey = key };

    static async Task SendInTurn(ServiceBusSender sender)
    {
        for (var body = 1; body <= 10; body++)
        {
            await sender.SendMessageAsync(Keyed(body % 2 == 1 ? "j" : "k", body));
        }
    }

    /// <summary>Checks ten messages of the keys j and k, which were sent in turn.</summary>
    static void KeysAreInOrder(List<ServiceBusReceivedMessage> messages)
    {
        var byKey = messages.ToLookup(each => each.PartitionKey);
        Check.Equal(["1", "3", "5", "7", "9"], Bodies(byKey["j"]));
        Check.Equal(["2", "4", "6", "8", "10"], Bodies(byKey["k"]));
        foreach (var key in byKey)
        {
            Check.Equal(1, key.Select(Partition).Distinct().Count());
            Check.True(Partition(key.First()) is >= 0 and <= 15, $"partition {Partition(key.First())}");
        }
        var isShared = Partition(byKey["j"].First()) == Partition(byKey["k"].First());
        Check.Equal(Range(1, isShared ? 10 : 5), messages.Select(Ordinal).Distinct().Order());
    }

    [Scenario("S211", "a partition key is one partition, in order")]
    public async Task APartitionKeyIsOnePartitionInOrder()
    {
        await SendInTurn(Client.CreateSender("s211"));
        KeysAreInOrder(await Receive(Client.CreateReceiver("s211"), 10));
    }

    [Scenario("S212", "a session is one partition")]
    public async Task ASessionIsOnePartition()
    {
        await Send("s212", [.. Enumerable.Range(1, 15).Select(body => InSession($"session-{body % 5}", body))]);
        var partitions = new HashSet<long>();
        for (var each = 1; each <= 5; each++)
        {
            var messages = await Receive(await Client.AcceptSessionAsync("s212", $"session-{each % 5}"), 3);
            Check.Equal([$"{each}", $"{each + 5}", $"{each + 10}"], Bodies(messages));
            Check.Equal(1, messages.Select(Partition).Distinct().Count());
            partitions.Add(Partition(messages[0]));
        }
        Check.True(partitions.Count > 1, "all sessions are in one partition");
        // The SDK sees that before the broker does.
        await Check.Throws<ArgumentOutOfRangeException>(() =>
            Task.FromResult(new ServiceBusMessage { SessionId = "x", PartitionKey = "y" }));
    }

    [Scenario("S213", "a message is found by its number in whichever partition")]
    public async Task AMessageIsFoundByItsNumberInWhicheverPartition()
    {
        var sender = Client.CreateSender("s213");
        await sender.SendMessagesAsync(Numbered(50));
        foreach (var body in Texts(51, 100))
        {
            await sender.SendMessageAsync(Message(body));
        }
        var receiver = Client.CreateReceiver("s213");
        var seen = await PeekAll(receiver);
        Check.Equal(100, seen.Count);
        Check.Equal(Sorted(Texts(1, 100)), Sorted(Bodies(seen)));
        Check.True(seen.Select(Partition).Distinct().Count() >= 2, "all messages are in one partition");
        var one = seen[60];
        Check.Equal(one.Body.ToString(), (await receiver.PeekMessageAsync(one.SequenceNumber)).Body.ToString());

        var messages = await Receive(receiver, 100);
        var (deferred, dead) = (messages[..10], messages[10..20]);
        foreach (var each in deferred)
        {
            await receiver.DeferMessageAsync(each);
        }
        foreach (var each in dead)
        {
            await receiver.DeadLetterMessageAsync(each);
        }
        await CompleteAll(receiver, messages[20..]);
        var again = await receiver.ReceiveDeferredMessagesAsync(Numbers(deferred));
        Check.Equal(Sorted(Numbers(deferred)), Sorted(Numbers(again)));
        await CompleteAll(receiver, again);
        Check.Equal(Sorted(Bodies(dead)),
            Sorted(Bodies(await Receive(Client.CreateReceiver("s213", DeadLetters), 10))));

        var scheduled = await sender.ScheduleMessagesAsync(Numbered(10), In(TimeSpan.FromHours(1)));
        Check.Equal(Sorted(scheduled), Sorted(Numbers(await PeekAll(receiver))));
        await sender.CancelScheduledMessagesAsync(scheduled);
        Check.Equal([], Bodies(await PeekAll(receiver)));
    }

    [Scenario("S214", "a duplicate is one of the same partition key")]
    public async Task ADuplicateIsOneOfTheSamePartitionKey()
    {
        (string Id, string? Key)[] sent = [("1", null), ("1", null), ("2", "k"), ("2", "k"), ("2", "j")];
        await Send("s214", [.. sent.Index().Select(each =>
            new ServiceBusMessage($"{each.Index + 1}") { MessageId = each.Item.Id, PartitionKey = each.Item.Key })]);
        Check.Equal(["1", "3", "5"], Bodies(await PeekAll(Client.CreateReceiver("s214"))).Order());
    }

    [Scenario("S215", "a batch with a partition key is in one partition")]
    public async Task ABatchWithAPartitionKeyIsInOnePartition()
    {
        var sender = Client.CreateSender("s215");
        using var batch = await sender.CreateMessageBatchAsync();
        for (var body = 1; body <= 10; body++)
        {
            Check.True(batch.TryAddMessage(Keyed("k", body)), $"the batch has no room for {body}");
        }
        await sender.SendMessagesAsync(batch);
        var messages = await Receive(Client.CreateReceiver("s215"), 10);
        Check.Equal(Texts(1, 10), Bodies(messages));
        messages.ForEach(each => Check.Equal("k", each.PartitionKey));
        Check.Equal(Range(messages[0].SequenceNumber, messages[0].SequenceNumber + 9), Numbers(messages));
    }

    [Scenario("S216", "subscriptions of a partitioned topic are partitioned")]
    public async Task SubscriptionsOfAPartitionedTopicArePartitioned()
    {
        await SendInTurn(Client.CreateSender("s216"));
        KeysAreInOrder(await Receive(Client.CreateReceiver("s216", "a"), 10));
    }
}

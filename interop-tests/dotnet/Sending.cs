using Azure.Core.Amqp;

namespace Interop;

class Sending : Scenarios
{
    [Scenario("S07", "a body keeps its kind and its content")]
    public async Task ABodyKeepsItsKindAndItsContent()
    {
        var sender = Client.CreateSender("s07");
        var receiver = Client.CreateReceiver("s07", Destructive);
        async Task<AmqpMessageBody> ThereAndBack(AmqpMessageBody body)
        {
            await sender.SendMessageAsync(new ServiceBusMessage(new AmqpAnnotatedMessage(body)));
            return (await ReceiveOne(receiver)).GetRawAmqpMessage().Body;
        }

        foreach (var sections in new byte[][][] { [[0, 1, 255]], [[]], [[1, 2], [3]] })
        {
            var body = await ThereAndBack(
                AmqpMessageBody.FromData(sections.Select(each => (ReadOnlyMemory<byte>)each)));
            Check.True(body.TryGetData(out var data), $"a body of {body.BodyType}");
            Check.Equal(sections.Select(Convert.ToHexString), data!.Select(each => Convert.ToHexString(each.Span)));
        }
        var id = Guid.Parse("80000000-0000-0000-0000-000000000005");
        foreach (var value in new object[] { "text", 4_000_000_000L, -1, true, 1.5, id })
        {
            var body = await ThereAndBack(AmqpMessageBody.FromValue(value));
            Check.True(body.TryGetValue(out var got), $"a body of {body.BodyType}");
            Check.Equal(value, got);
        }
        var map = await ThereAndBack(
            AmqpMessageBody.FromValue(new Dictionary<string, object> { ["key"] = new List<object> { 1, "two" } }));
        Check.True(map.TryGetValue(out var pairs) && pairs is IDictionary<string, object>, $"{pairs}");
        Check.Equal([1, "two"], (IEnumerable<object>)((IDictionary<string, object>)pairs!)["key"]);

        IList<object>[] sequences = [[1, "two", 3L], ["another"]];
        var sequence = await ThereAndBack(AmqpMessageBody.FromSequence(sequences));
        Check.True(sequence.TryGetSequence(out var lists), $"a body of {sequence.BodyType}");
        Check.Equal(sequences.SelectMany(each => each), lists!.SelectMany(each => each));

        await sender.SendMessageAsync(new ServiceBusMessage());
        Check.Equal(0, (await ReceiveOne(receiver)).Body.ToArray().Length);
    }

    [Scenario("S08", "every property comes back with its value and type")]
    public async Task EveryPropertyComesBack()
    {
        var properties = new Dictionary<string, object?>
        {
            ["string"] = "ü", ["empty"] = "", ["true"] = true, ["char"] = 'x', ["null"] = null,
            ["byte"] = (byte)255, ["sbyte"] = (sbyte)-1, ["short"] = (short)-2, ["ushort"] = (ushort)60_000,
            ["int"] = -3, ["uint"] = 4_000_000_000u, ["long"] = 1L << 40, ["ulong"] = ulong.MaxValue,
            ["float"] = 0.5f, ["double"] = 1.5, ["decimal"] = 12.34m,
            ["uuid"] = Guid.Parse("80000000-0000-0000-0000-000000000005"),
            ["time"] = new DateTime(2026, 2, 3, 4, 5, 6, 789, DateTimeKind.Utc),
            ["offset"] = new DateTimeOffset(2026, 2, 3, 4, 5, 6, TimeSpan.Zero),
            ["duration"] = TimeSpan.FromMilliseconds(90_061_001), ["uri"] = new Uri("http://example.test/a?b"),
        };
        var sent = new ServiceBusMessage("all")
        {
            MessageId = "id-1", CorrelationId = "correlation", ContentType = "text/plain", Subject = "subject",
            To = "to", ReplyTo = "reply-to", ReplyToSessionId = "reply-to-session",
            TimeToLive = TimeSpan.FromMinutes(10), PartitionKey = "key", TransactionPartitionKey = "via",
        };
        foreach (var (name, value) in properties)
        {
            sent.ApplicationProperties[name] = value;
        }
        await Send("s08", sent);

        var message = await ReceiveOne(Client.CreateReceiver("s08"));
        Check.Equal("id-1", message.MessageId);
        Check.Equal("correlation", message.CorrelationId);
        Check.Equal("text/plain", message.ContentType);
        Check.Equal("subject", message.Subject);
        Check.Equal("to", message.To);
        Check.Equal("reply-to", message.ReplyTo);
        Check.Equal("reply-to-session", message.ReplyToSessionId);
        Check.Equal(TimeSpan.FromMinutes(10), message.TimeToLive);
        Check.Equal("key", message.PartitionKey);
        Check.Equal("via", message.TransactionPartitionKey);
        Check.Equal(properties.Keys.Order(), message.ApplicationProperties.Keys.Order());
        foreach (var (name, value) in properties)
        {
            Check.Equal(value, message.ApplicationProperties[name]);
        }
    }

    [Scenario("S09", "header, annotations and footer come back")]
    public async Task HeaderAnnotationsAndFooterComeBack()
    {
        var sent = Message("annotated");
        var raw = sent.GetRawAmqpMessage();
        raw.Header.Durable = true;
        raw.Header.Priority = 9;
        raw.DeliveryAnnotations["my-delivery-annotation"] = "delivery";
        raw.MessageAnnotations["my-message-annotation"] = "message";
        raw.Footer["my-footer"] = "footer";
        await Send("s09", sent);

        var received = (await ReceiveOne(Client.CreateReceiver("s09"))).GetRawAmqpMessage();
        Check.Equal(true, received.Header.Durable);
        Check.Equal((byte)9, received.Header.Priority);
        Check.Equal("delivery", received.DeliveryAnnotations["my-delivery-annotation"]);
        Check.Equal("message", received.MessageAnnotations["my-message-annotation"]);
        Check.Equal("footer", received.Footer["my-footer"]);
    }

    [Scenario("S10", "a batch of 100 arrives in order")]
    public async Task ABatchOf100ArrivesInOrder()
    {
        var sender = Client.CreateSender("s10");
        var batch = await sender.CreateMessageBatchAsync();
        foreach (var message in Numbered(100))
        {
            Check.True(batch.TryAddMessage(message), $"no room after {batch.Count}");
        }
        await sender.SendMessagesAsync(batch);
        batch.Dispose();
        var messages = await Receive(Client.CreateReceiver("s10"), 100);
        Check.Equal(Texts(1, 100), Bodies(messages));
        Check.Equal(Range(1, 100), Numbers(messages));
    }

    [Scenario("S11", "small and large messages come back byte for byte")]
    public async Task SmallAndLargeMessagesComeBack()
    {
        var sender = Client.CreateSender("s11");
        var receiver = Client.CreateReceiver("s11", Destructive);
        foreach (var size in new[] { 1, 64 * 1024, 200 * 1024 })
        {
            await sender.SendMessageAsync(OfSize(size));
            Check.Equal(Pattern(size), (await ReceiveOne(receiver)).Body.ToArray());
        }
    }

    [Scenario("S12", "a message that is too large is refused and the sender goes on")]
    public async Task AMessageThatIsTooLargeIsRefused()
    {
        var sender = Client.CreateSender("s12");
        var receiver = Client.CreateReceiver("s12");
        await Fails(ServiceBusFailureReason.MessageSizeExceeded, () => sender.SendMessageAsync(OfSize(100 * 1024)));
        await ReceiveNothing(receiver);
        await sender.SendMessageAsync(Message("small"));
        Check.Equal("small", (await ReceiveOne(receiver)).Body.ToString());
    }

    [Scenario("S13", "2000 messages of two senders arrive once and in order")]
    public async Task TwoThousandMessagesArriveOnceAndInOrder()
    {
        async Task SendAll(string name)
        {
            var sender = Connect().CreateSender("s13");
            foreach (var chunk in Enumerable.Range(1, 1_000).Chunk(50))
            {
                await sender.SendMessagesAsync(
                    chunk.Select(each => new ServiceBusMessage($"{each}") { Subject = name }));
            }
        }
        var sends = Task.WhenAll(SendAll("a"), SendAll("b"));
        var receiver = Client.CreateReceiver("s13", Prefetching(100));
        var seen = new List<ServiceBusReceivedMessage>();
        while (seen.Count < 2_000)
        {
            // The SDK gives credit anew for what is settled only: it cannot be asked for 100 messages each time.
            var messages = await receiver.ReceiveMessagesAsync(100, Deadline);
            Check.True(messages.Count > 0, $"{seen.Count} of 2000 messages");
            seen.AddRange(messages);
            await Task.WhenAll(messages.Select(each => receiver.CompleteMessageAsync(each)));
        }
        await sends;
        foreach (var name in new[] { "a", "b" })
        {
            Check.Equal(Texts(1, 1_000), Bodies(seen.Where(each => each.Subject == name)));
        }
        Check.Equal(0, (await PeekAll(receiver)).Count);
    }
}

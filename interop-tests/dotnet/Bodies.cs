using System.Collections;
using Azure.Core.Amqp;

namespace Interop;

/// <summary>Every type of an application property, and every kind of AMQP body, that the SDK can write.</summary>
class Bodies : Scenarios
{
    static readonly object[] Simple =
    [
        "text", "", true, false, byte.MaxValue, sbyte.MinValue, short.MinValue, ushort.MaxValue, int.MinValue,
            uint.MaxValue,
        long.MinValue, ulong.MaxValue, 1.5f, -2.25d, 1234567.891m, 'é',
            Guid.Parse("00112233-4455-6677-8899-aabbccddeeff"),
        new DateTime(2031, 2, 3, 4, 5, 6, 789, DateTimeKind.Utc),
    ];

    static void Same(object wanted, object got)
    {
        Check.Equal(wanted.GetType().Name, got.GetType().Name);
        Check.Equal(wanted, got);
    }

    [Scenario("S536", "application properties of every type come back with type and value")]
    public async Task Properties()
    {
        var queue = await CreateQueue("s536");
        object[] described =
        [
            new DateTimeOffset(2031, 2, 3, 4, 5, 6, TimeSpan.Zero), TimeSpan.FromTicks(-123_456_789),
                new Uri("https://example.org/a?b=c"),
        ];
        var message = Message("properties");
        foreach (var (value, index) in Simple.Concat(described).Select((value, index) => (value, index)))
        {
            message.ApplicationProperties[$"p{index}"] = value;
        }
        message.ApplicationProperties["nothing"] = null;
        message.ApplicationProperties["bytes"] = Pattern(300);
        await Send(queue, message);
        var receiver = Client.CreateReceiver(queue);
        // Received, peeked, and sent on as a copy of what was received.
        var peeked = await receiver.PeekMessageAsync();
        var received = await ReceiveOne(receiver);
        await receiver.CompleteMessageAsync(received);
        await Send(queue, new ServiceBusMessage(received));
        foreach (var found in new[] { peeked, received, await ReceiveOne(receiver) })
        {
            foreach (var (value, index) in Simple.Concat(described).Select((value, index) => (value, index)))
            {
                Same(value, found.ApplicationProperties[$"p{index}"]);
            }
            Check.True(found.ApplicationProperties["nothing"] is null, "null is something");
            Check.Equal(Pattern(300), (byte[])found.ApplicationProperties["bytes"]);
            Check.Equal(Simple.Length + described.Length + 2, found.ApplicationProperties.Count);
        }
        var sender = Client.CreateSender(queue);
        await Check.Throws<System.Runtime.Serialization.SerializationException>(
            () => sender.SendMessageAsync(With("no type of AMQP", new object())));
    }

    async Task<AmqpMessageBody> Back(ServiceBusSender sender, ServiceBusReceiver receiver, AmqpMessageBody body)
    {
        var message = new ServiceBusMessage();
        message.GetRawAmqpMessage().Body = body;
        await sender.SendMessageAsync(message);
        return (await ReceiveOne(receiver)).GetRawAmqpMessage().Body;
    }

    [Scenario("S537", "bodies of data, of sequences and of values come back as what they were")]
    public async Task Kinds()
    {
        var queue = await CreateQueue("s537");
        var sender = Client.CreateSender(queue);
        var receiver = Client.CreateReceiver(queue, Destructive);

        var data = await Back(sender, receiver, AmqpMessageBody.FromData([Pattern(10), Pattern(1), Pattern(70_000)]));
        Check.True(data.TryGetData(out var sections), "no data");
        Check.Equal([10, 1, 70_000], sections!.Select(each => each.Length).ToList());
        Check.Equal(Pattern(70_000), sections!.Last().ToArray());

        IList<object>[] lists = [["one", 2, 3.0], [Guid.Empty, new List<object> { "nested", 'x' }], []];
        var sequence = await Back(sender, receiver, AmqpMessageBody.FromSequence(lists));
        Check.True(sequence.TryGetSequence(out var found), "no sequence");
        var back = found!.ToList();
        Check.Equal([3, 2, 0], back.Select(each => each.Count).ToList());
        Check.Equal<object>("one", back[0][0]);
        Check.Equal<object>(3.0, back[0][2]);
        Check.Equal("nested x", string.Join(' ', ((IEnumerable)back[1][1]).Cast<object>()));

        foreach (var value in Simple)
        {
            Check.True((await Back(sender, receiver, AmqpMessageBody.FromValue(value))).TryGetValue(out var single),
                "no value");
            Same(value, single!);
        }
        Check.True((await Back(sender, receiver, AmqpMessageBody.FromValue(Pattern(1000)))).TryGetValue(out var bytes),
            "no value");
        Check.Equal(Pattern(1000), (byte[])bytes!);
        var map = new Dictionary<string, object> { ["a"] = 1, ["b"] = new List<object> { "c", true } };
        Check.True((await Back(sender, receiver, AmqpMessageBody.FromValue(map))).TryGetValue(out var told),
            "no value");
        Check.Equal<object>(1, ((IDictionary<string, object>)told!)["a"]);
        Check.Equal("c True", string.Join(
            ' ', ((IEnumerable)((IDictionary<string, object>)told!)["b"]).Cast<object>()));
        Check.True((await Back(sender, receiver, AmqpMessageBody.FromValue(new[] { 1, 2, 3 }))).TryGetValue(
            out var array), "no value");
        Check.Equal([1, 2, 3], ((int[])array!).ToList());
    }

    [Scenario("S538", "every section of an annotated message comes back")]
    public async Task Sections()
    {
        var queue = await CreateQueue("s538");
        var message = new ServiceBusMessage("sections");
        var raw = message.GetRawAmqpMessage();
        raw.Header.Durable = true;
        raw.Header.Priority = 7;
        raw.Footer["footer"] = "of mine";
        raw.DeliveryAnnotations["delivery"] = 1L;
        raw.MessageAnnotations["annotation"] = Guid.Empty;
        raw.Properties.UserId = Pattern(20);
        raw.Properties.ContentEncoding = "identity";
        raw.Properties.GroupSequence = 9;
        raw.Properties.AbsoluteExpiryTime = In(TimeSpan.FromDays(2));
        raw.Properties.CreationTime = In(TimeSpan.Zero);
        raw.Properties.MessageId = new AmqpMessageId("an id");
        raw.Properties.ReplyTo = new AmqpAddress("reply");
        await Send(queue, message);
        var found = (await ReceiveOne(Client.CreateReceiver(queue))).GetRawAmqpMessage();
        Check.Equal("sections", found.Body.TryGetData(out var data) ? BinaryData.FromBytes(data.Single()).ToString()
            : "no data");
        Check.Equal(true, found.Header.Durable);
        Check.Equal((byte)7, found.Header.Priority);
        Check.Equal<object>("of mine", found.Footer["footer"]);
        Check.Equal<object>(1L, found.DeliveryAnnotations["delivery"]);
        Check.Equal<object>(Guid.Empty, found.MessageAnnotations["annotation"]);
        Check.Equal(Pattern(20), found.Properties.UserId!.Value.ToArray());
        Check.Equal("identity", found.Properties.ContentEncoding);
        Check.Equal(9u, found.Properties.GroupSequence);
        Check.Equal("an id", found.Properties.MessageId.ToString());
        Check.Equal("reply", found.Properties.ReplyTo.ToString());
        Check.Equal(raw.Properties.CreationTime, found.Properties.CreationTime);
    }
}

using System.Collections;
using Azure.Core.Amqp;

namespace Interop;

/// <summary>What is sent is what comes.</summary>
class Values : MoreScenarios
{
    static readonly string LongText = string.Concat(Enumerable.Repeat("ü€😀", 50));

    /// <summary>Every scalar of AMQP that .NET has a type for.</summary>
    static readonly object[] Scalars =
    [
        true, false, byte.MinValue, byte.MaxValue, sbyte.MinValue, sbyte.MaxValue, short.MinValue, short.MaxValue,
        ushort.MaxValue, int.MinValue, -1, 0, 127, 128, int.MaxValue, uint.MinValue, uint.MaxValue, long.MinValue,
        -129L, 0L, long.MaxValue, ulong.MinValue, ulong.MaxValue, 0f, -0f, float.PositiveInfinity, float.NaN,
        float.Epsilon, 0d, -0d, double.NegativeInfinity, double.NaN, double.MaxValue, 12345.6789m, -1m, 'x', 'ü',
        Guid.Parse("80000000-0000-0000-ffff-ffffffffffff"), "", "ü€😀", LongText,
    ];

    /// <summary>The SDK reads every time before 1970 as 1970.</summary>
    static readonly DateTime[] Times = [DateTime.UnixEpoch, new(3001, 1, 1, 0, 0, 0, 1, DateTimeKind.Utc)];

    static readonly byte[][] Binaries = [[], [0, 1, 255], Pattern(300)];

    /// <summary>A value as text, so that lists and maps can be compared, with the types in it.</summary>
    static string Told(object? value) => value switch
    {
        null => "null",
        byte[] bytes => $"binary {Convert.ToHexString(bytes)}",
        string text => $"\"{text}\"",
        IDictionary map =>
            $"{{{string.Join(", ", map.Keys.Cast<object>().Select(key => $"{Told(key)}: {Told(map[key])}").Order())}}}",
        IEnumerable list => $"[{string.Join(", ", list.Cast<object?>().Select(Told))}]",
        double number => $"double {BitConverter.DoubleToInt64Bits(number)}",
        float number => $"float {BitConverter.SingleToInt32Bits(number)}",
        DateTime time => $"time {time.ToUniversalTime():O}",
        IFormattable other =>
            $"{other.GetType().Name} {other.ToString(null, System.Globalization.CultureInfo.InvariantCulture)}",
        _ => $"{value.GetType().Name} {value}",
    };

    [Scenario("S321", "values of every type as bodies")]
    public async Task ValuesOfEveryTypeAsBodies()
    {
        // The SDK sends no map within a map or a list.
        var map = new Dictionary<string, object>
        {
            ["list"] = new List<object> { 1, "two" }, ["flag"] = true, ["ü"] = 0.5,
        };
        var list = new List<object> { 1L, new List<object> { "x", new List<object>() }, Guid.Empty };
        object[] values = [.. Scalars, .. Times, .. Binaries, new List<object>(), list, map];
        var sender = Client.CreateSender("s321");
        foreach (var value in values)
        {
            await sender.SendMessageAsync(new ServiceBusMessage().WithBody(AmqpMessageBody.FromValue(value)));
        }
        var messages = await Receive(Client.CreateReceiver("s321", Destructive), values.Length);
        foreach (var (value, message) in values.Zip(messages))
        {
            var body = message.GetRawAmqpMessage().Body;
            Check.Equal(AmqpMessageBodyType.Value, body.BodyType);
            Check.True(body.TryGetValue(out var got), "no value");
            Check.Equal(Told(value), Told(got));
        }
    }

    [Scenario("S322", "values of every type as properties")]
    public async Task ValuesOfEveryTypeAsProperties()
    {
        var message = Message("all");
        object?[] values = [.. Scalars, .. Times, null, TimeSpan.FromMilliseconds(-1),
            new Uri("sb://example.com/a?b=ü")];
        foreach (var (index, value) in values.Index())
        {
            message.ApplicationProperties[$"{index} {value?.GetType().Name}"] = value;
        }
        // A time with an offset comes back as the same moment.
        message.ApplicationProperties["offset"] = new DateTimeOffset(2026, 1, 2, 3, 4, 5, TimeSpan.FromHours(2));
        await Send("s322", message);
        var got = (await ReceiveOne(Client.CreateReceiver("s322"))).ApplicationProperties;
        Check.Equal(values.Length + 1, got.Count);
        foreach (var (index, value) in values.Index())
        {
            Check.Equal(Told(value), Told(got[$"{index} {value?.GetType().Name}"]));
        }
        Check.Equal(new DateTimeOffset(2026, 1, 2, 1, 4, 5, TimeSpan.Zero), (DateTimeOffset)got["offset"]);
    }

    [Scenario("S323", "several sections of a body stay apart")]
    public async Task SeveralSectionsOfABodyStayApart()
    {
        // The SDK sends no empty section among others.
        byte[][][] all = [[[1], [2, 3], [4]], [.. Enumerable.Range(0, 100).Select(each => new[] { (byte)each })]];
        var sender = Client.CreateSender("s323");
        foreach (var sections in all)
        {
            var body = AmqpMessageBody.FromData(sections.Select(each => (ReadOnlyMemory<byte>)each));
            await sender.SendMessageAsync(new ServiceBusMessage().WithBody(body));
        }
        IList<object>[] sequences = [new List<object> { 1, "two" }, new List<object>(), new List<object> { 3L }];
        await sender.SendMessageAsync(new ServiceBusMessage().WithBody(AmqpMessageBody.FromSequence(sequences)));

        var messages = await Receive(Client.CreateReceiver("s323"), all.Length + 1);
        foreach (var (sections, message) in all.Zip(messages))
        {
            Check.True(message.GetRawAmqpMessage().Body.TryGetData(out var got), "no data");
            Check.Equal(sections.Select(Convert.ToHexString).ToList(),
                got!.Select(each => Convert.ToHexString(each.Span)).ToList());
        }
        Check.True(messages[^1].GetRawAmqpMessage().Body.TryGetSequence(out var there), "no sequence");
        Check.Equal(Told(sequences), Told(there));
    }

    /// <summary>W3C's own examples.</summary>
    static readonly Dictionary<string, object> Trace = new()
    {
        ["Diagnostic-Id"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ["traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ["tracestate"] = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
    };

    static ServiceBusMessage Traced(string body)
    {
        var message = Message(body);
        foreach (var (name, value) in Trace)
        {
            message.ApplicationProperties[name] = value;
        }
        return message;
    }

    static void IsTraced(ServiceBusReceivedMessage message) =>
        Check.Equal(Told(Trace),
            Told(message.ApplicationProperties.Where(each => !each.Key.StartsWith("DeadLetter")).ToDictionary()));

    [Scenario("S326", "tracing headers come back on each way")]
    public async Task TracingHeadersComeBackOnEachWay()
    {
        var sender = Client.CreateSender("s326");
        var receiver = Client.CreateReceiver("s326");
        await sender.ScheduleMessageAsync(Traced("scheduled"), In(Seconds(1)));
        var scheduled = await ReceiveOne(receiver);
        IsTraced(scheduled);
        await receiver.CompleteMessageAsync(scheduled);

        await sender.SendMessageAsync(Traced("deferred"));
        var message = await ReceiveOne(receiver);
        await receiver.DeferMessageAsync(message);
        var deferred = await receiver.ReceiveDeferredMessageAsync(message.SequenceNumber);
        IsTraced(deferred);
        await receiver.CompleteMessageAsync(deferred);

        await sender.SendMessageAsync(Traced("dead"));
        await receiver.DeadLetterMessageAsync(await ReceiveOne(receiver), "why");
        IsTraced(await ReceiveOne(Client.CreateReceiver("s326", DeadLetters)));

        await Send("s326t", Traced("copied"));
        IsTraced(await ReceiveOne(Client.CreateReceiver("s326t", "a")));
    }
}

static class Bodied
{
    /// <summary>The message with this body.</summary>
    public static ServiceBusMessage WithBody(this ServiceBusMessage message, AmqpMessageBody body)
    {
        message.GetRawAmqpMessage().Body = body;
        return message;
    }
}

using Amqp;
using Amqp.Framing;
using Amqp.Types;
using static Interop.Lite.Broker;

namespace Interop.Lite;

/// <summary>Attach options, credit, drain, settlement and filters.</summary>
public static class Links
{
    [Test("an attach is answered with the names, addresses and settle modes that were asked for")]
    public static async Task Attached()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        var asked = new Attach
        {
            Source = new Source { Address = queue, Outcomes = ["amqp:accepted:list", "amqp:rejected:list"] },
            Target = new Target { Address = "here" },
            SndSettleMode = SenderSettleMode.Unsettled,
            RcvSettleMode = ReceiverSettleMode.Second,
        };
        var answer = new TaskCompletionSource<Attach>(TaskCreationOptions.RunContinuationsAsynchronously);
        _ = new ReceiverLink(session, "a name", asked, (_, attach) => answer.TrySetResult(attach));
        var receiving = await answer.Task.WaitAsync(Soon);
        Expect.Equal("a name", receiving.LinkName, "the name");
        Expect.Equal(false, receiving.Role, "the role");
        Expect.Equal(queue, ((Source)receiving.Source).Address, "the source");
        Expect.Equal("here", ((Target)receiving.Target).Address, "the target");
        Expect.Equal(SenderSettleMode.Unsettled, receiving.SndSettleMode, "snd-settle-mode");
        Expect.Equal(ReceiverSettleMode.Second, receiving.RcvSettleMode, "rcv-settle-mode");
        Expect.Equal(0u, receiving.InitialDeliveryCount, "initial-delivery-count");

        answer = new TaskCompletionSource<Attach>(TaskCreationOptions.RunContinuationsAsynchronously);
        var attach = new Attach { Source = new Source { Address = "there" }, Target = new Target { Address = queue },
            SndSettleMode = SenderSettleMode.Mixed };
        _ = new SenderLink(session, "a name", attach, (_, attach) => answer.TrySetResult(attach));
        var sending = await answer.Task.WaitAsync(Soon);
        Expect.Equal(true, sending.Role, "the role");
        Expect.Equal(queue, ((Target)sending.Target).Address, "the target");
        Expect.Equal(SenderSettleMode.Mixed, sending.SndSettleMode, "snd-settle-mode");
        Expect.True(sending.MaxMessageSize >= 262_144, $"max-message-size {sending.MaxMessageSize}");
        await connection.CloseAsync();
    }

    [Test("nothing comes without credit, and never more than there is credit for")]
    public static async Task Credit()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        await Send(session, queue, [.. Enumerable.Range(0, 20).Select(n => $"m{n}")]);
        var receiver = new ReceiverLink(session, "receiver", queue);
        // Without this the client gives credit by itself at the first receive.
        receiver.SetCredit(0, CreditMode.Manual);
        Expect.Equal(null, await receiver.ReceiveAsync(Brief), "a message without credit");
        var next = 0;
        foreach (var credit in new[] { 1, 3, 12 })
        {
            receiver.SetCredit(credit, CreditMode.Manual);
            for (var n = 0; n < credit; n++)
            {
                var message = await Next(receiver);
                Expect.Equal($"m{next++}", message.Body, "the order");
                receiver.Accept(message);
            }
            Expect.Equal(null, await receiver.ReceiveAsync(Brief), $"a message beyond a credit of {credit}");
        }
        await connection.CloseAsync();
    }

    [Test("credit that is restored as messages are settled lets 500 of them through in order")]
    public static async Task Restored()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        var sender = new SenderLink(session, "sender", queue);
        await Task.WhenAll(Enumerable.Range(0, 500).Select(n => sender.SendAsync(new Message(n), Soon)));
        var receiver = new ReceiverLink(session, "receiver", queue);
        var seen = new List<int>();
        var done = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
        receiver.Start(7, (link, message) =>
        {
            seen.Add((int)message.Body);
            link.Accept(message);
            if (seen.Count == 500)
            {
                done.SetResult();
            }
        });
        await done.Task.WaitAsync(Soon);
        Expect.True(seen.SequenceEqual(Enumerable.Range(0, 500)), "the order");
        await receiver.CloseAsync();
        Expect.Equal(0, await Count(session, queue), "messages that are left");
        await connection.CloseAsync();
    }

    [Test("a drain brings what is there and uses up the rest of the credit")]
    public static async Task Drain()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        await Send(session, queue, "a", "b", "c");
        var receiver = new ReceiverLink(session, "receiver", queue);
        for (var round = 0; round < 3; round++)
        {
            receiver.SetCredit(10, CreditMode.Drain);
            if (round == 0)
            {
                foreach (var expected in new[] { "a", "b", "c" })
                {
                    var message = await Next(receiver);
                    Expect.Equal(expected, message.Body, "the order");
                    receiver.Accept(message);
                }
            }
            Expect.Equal(null, await receiver.ReceiveAsync(Brief), "a message after the drain");
        }
        // A drain of nothing leaves no credit behind.
        await Send(session, queue, "later");
        Expect.Equal(null, await receiver.ReceiveAsync(Brief), "a message that came after the drain");
        receiver.SetCredit(1, CreditMode.Manual);
        Expect.Equal("later", (await Next(receiver)).Body, "the message with new credit");
        await connection.CloseAsync();
    }

    [Test("a sender that settles at once, and a receiver that asks for settled deliveries, need no dispositions")]
    public static async Task Settled()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        var settled = new SenderLink(session, "sender", new Attach
        {
            Source = new Source(), Target = new Target { Address = queue }, SndSettleMode = SenderSettleMode.Settled,
        }, null);
        settled.Send(new Message("a"), null, null);
        settled.Send(new Message("b"), null, null);
        var receiver = new ReceiverLink(session, "receiver", new Attach
        {
            Source = new Source { Address = queue }, Target = new Target(), SndSettleMode = SenderSettleMode.Settled,
        }, null);
        receiver.SetCredit(10, CreditMode.Manual);
        Expect.Equal("a", (await Next(receiver)).Body, "the first message");
        Expect.Equal("b", (await Next(receiver)).Body, "the second message");
        await receiver.CloseAsync();
        Expect.Equal(0, await Count(session, queue), "messages that are left");
        await connection.CloseAsync();
    }

    [Test("with rcv-settle-mode second a settlement is answered, and the message is gone then")]
    public static async Task Second()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        await Send(session, queue, "a");
        var receiver = new ReceiverLink(session, "receiver", new Attach
        {
            Source = new Source { Address = queue }, Target = new Target(), RcvSettleMode = ReceiverSettleMode.Second,
        }, null);
        receiver.SetCredit(1, CreditMode.Manual);
        var message = await Next(receiver);
        Expect.Equal(1, await Count(session, queue), "messages before the settlement");
        receiver.Accept(message);
        await receiver.CloseAsync();
        Expect.Equal(0, await Count(session, queue), "messages after the settlement");
        await connection.CloseAsync();
    }

    [Test("every outcome does what it stands for")]
    public static async Task Outcomes()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        await Send(session, queue, "released");
        var receiver = new ReceiverLink(session, "receiver", queue);

        async Task<Message> One()
        {
            receiver.SetCredit(1, CreditMode.Manual);
            return await Next(receiver);
        }

        var message = await One();
        Expect.Equal(0u, message.Header.DeliveryCount, "the first delivery-count");
        receiver.Release(message);
        message = await One();
        Expect.Equal(0u, message.Header.DeliveryCount, "the delivery-count after released");
        receiver.Modify(message, deliveryFailed: true, undeliverableHere: false,
            new Fields { [new Symbol("note")] = "changed" });
        message = await One();
        Expect.Equal(1u, message.Header.DeliveryCount, "the delivery-count after modified");
        Expect.Equal("changed", message.ApplicationProperties["note"], "the property that modified changed");
        var number = (long)message.MessageAnnotations[new Symbol("x-opt-sequence-number")];
        receiver.Modify(message, deliveryFailed: false, undeliverableHere: true);

        // Deferred: it comes by its number only.
        receiver.SetCredit(1, CreditMode.Manual);
        Expect.Equal(null, await receiver.ReceiveAsync(Brief), "a deferred message");
        await using var node = await Node.Open(session, $"{queue}/$management");
        var answer = await node.Ask("com.microsoft:receive-by-sequence-number", new Map
        {
            ["sequence-numbers"] = new[] { number }, ["receiver-settle-mode"] = 1u,
        });
        Expect.Equal(200, (int)answer.ApplicationProperties["statusCode"], "the deferred message by its number");
        var deferred = (Map)((List)((Map)answer.Body)["messages"])[0];
        var token = (Guid)deferred["lock-token"];
        answer = await node.Ask("com.microsoft:update-disposition",
            new Map { ["disposition-status"] = "completed", ["lock-tokens"] = new[] { token } });
        Expect.Equal(200, (int)answer.ApplicationProperties["statusCode"], "its completion");

        await Send(session, queue, "rejected");
        message = await Next(receiver);
        receiver.Reject(message, new Error(new Symbol("some:condition")) { Description = "some description" });
        var dead = new ReceiverLink(session, "dead", $"{queue}/$DeadLetterQueue");
        dead.SetCredit(1, CreditMode.Manual);
        message = await Next(dead);
        Expect.Equal("rejected", message.Body, "the dead letter");
        Expect.Equal("some:condition", message.ApplicationProperties["DeadLetterReason"], "the reason");
        Expect.Equal("some description", message.ApplicationProperties["DeadLetterErrorDescription"],
            "the description");
        dead.Accept(message);
        await dead.CloseAsync();
        Expect.Equal(0, await Count(session, queue), "messages that are left");
        await connection.CloseAsync();
    }

    [Test("a link that is attached anew under its name on one connection steals the first one")]
    public static async Task Stolen()
    {
        var queue = await Queue();
        var connection = await Connect();
        var first = new ReceiverLink(new Session(connection), "one name", queue);
        var error = new TaskCompletionSource<Error>(TaskCreationOptions.RunContinuationsAsynchronously);
        first.AddClosedCallback((_, reason) => error.TrySetResult(reason));
        first.SetCredit(1, CreditMode.Manual);
        var session = new Session(connection);
        var second = new ReceiverLink(session, "one name", queue);
        second.SetCredit(1, CreditMode.Manual);
        Expect.Equal("amqp:link:stolen", (await error.Task.WaitAsync(Soon))?.Condition.ToString(),
            "the end of the first link");
        await Send(session, queue, "a");
        Expect.Equal("a", (await Next(second)).Body, "the message of the second link");
        await connection.CloseAsync();
    }

    [Test("links of one name on two connections are two links")]
    public static async Task Apart()
    {
        var queue = await Queue();
        var (one, other) = (await Connect(), await Connect());
        var first = new ReceiverLink(new Session(one), "one name", queue);
        var session = new Session(other);
        var second = new ReceiverLink(session, "one name", queue);
        first.SetCredit(1, CreditMode.Manual);
        second.SetCredit(1, CreditMode.Manual);
        await Send(session, queue, "a", "b");
        var bodies = new[] { (string)(await Next(first)).Body, (string)(await Next(second)).Body };
        Expect.Equal("a b", string.Join(" ", bodies.Order()), "the messages of both");
        Expect.True(!first.IsClosed && !second.IsClosed, "a link was closed");
        await one.CloseAsync();
        await other.CloseAsync();
    }

    [Test("an entity that is not there is answered with an attach and a detach, and the connection stays")]
    public static async Task Unknown()
    {
        var connection = await Connect();
        var session = new Session(connection);
        foreach (var refused in new[]
        {
            await Refusal(attached => new SenderLink(session, "s", new Target { Address = "nowhere" }, attached)),
            await Refusal(attached => new ReceiverLink(session, "r", new Source { Address = "nowhere" }, attached)),
            await Refusal(attached => new ReceiverLink(
                session, "n", new Source { Address = "nowhere/$management" }, attached)),
        })
        {
            Expect.Equal(ErrorCode.NotFound, refused.Condition.ToString(), "the condition");
            Expect.True(refused.Description.Contains("could not be found"), refused.Description);
        }
        var queue = await Queue();
        await Send(session, queue, "a");
        Expect.Equal(1, await Count(session, queue), "messages by way of the same session");
        await connection.CloseAsync();
    }

    [Test("a selector takes what matches, and a filter that is not known is left out of the answer")]
    public static async Task Filters()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        var sender = new SenderLink(session, "sender", queue);
        foreach (var n in Enumerable.Range(0, 6))
        {
            await sender.SendAsync(new Message(n) { ApplicationProperties = new ApplicationProperties { ["n"] = n } },
                Soon);
        }
        var name = new Symbol("apache.org:selector-filter:string");
        var unknown = new Symbol("no.such:filter");
        var answer = new TaskCompletionSource<Attach>(TaskCreationOptions.RunContinuationsAsynchronously);
        var source = new Source
        {
            Address = queue,
            FilterSet = new Map { [name] = new DescribedValue(0x468C00000004UL, "n > 3"),
                [unknown] = new DescribedValue(unknown, "x") },
        };
        var receiver = new ReceiverLink(session, "receiver", source, (_, attach) => answer.TrySetResult(attach));
        var filters = ((Source)(await answer.Task.WaitAsync(Soon)).Source).FilterSet;
        Expect.True(filters.ContainsKey(name), "the selector is not in the answer");
        Expect.True(!filters.ContainsKey(unknown), "the unknown filter is in the answer");
        receiver.SetCredit(10, CreditMode.Manual);
        foreach (var expected in new[] { 4, 5 })
        {
            var message = await Next(receiver);
            Expect.Equal(expected, message.Body, "what matches");
            receiver.Accept(message);
        }
        Expect.Equal(null, await receiver.ReceiveAsync(Brief), "what does not match");
        await receiver.CloseAsync();
        Expect.Equal(4, await Count(session, queue), "what is left");
        await connection.CloseAsync();
    }

    [Test("a session filter takes the session that it names, or the next one, and the answer says which")]
    public static async Task Sessions()
    {
        var queue = await Queue("<RequiresSession>true</RequiresSession>");
        var connection = await Connect();
        var session = new Session(connection);
        var sender = new SenderLink(session, "sender", queue);
        foreach (var id in new[] { "one", "two", "one" })
        {
            await sender.SendAsync(new Message(id) { Properties = new Properties { GroupId = id } }, Soon);
        }
        var filter = new Symbol("com.microsoft:session-filter");

        async Task<(ReceiverLink Link, string Id)> Accept(string link, string? id)
        {
            var answer = new TaskCompletionSource<Attach>(TaskCreationOptions.RunContinuationsAsynchronously);
            var source = new Source { Address = queue, FilterSet = new Map { [filter] = id } };
            var receiver = new ReceiverLink(session, link, source, (_, attach) => answer.TrySetResult(attach));
            var accepted = await answer.Task.WaitAsync(Soon);
            receiver.SetCredit(10, CreditMode.Manual);
            return (receiver, (string)((Source)accepted.Source).FilterSet[filter]);
        }

        var two = await Accept("first", "two");
        Expect.Equal("two", two.Id, "the session that was named");
        Expect.Equal("two", (await Next(two.Link)).Properties.GroupId, "its message");
        var next = await Accept("second", null);
        Expect.Equal("one", next.Id, "the next session");
        Expect.Equal("one", (await Next(next.Link)).Body, "its first message");
        Expect.Equal("one", (await Next(next.Link)).Body, "its second message");
        var held = await Refusal(attached => new ReceiverLink(
            session, "third", new Source { Address = queue, FilterSet = new Map { [filter] = "two" } }, attached));
        Expect.Equal("com.microsoft:session-cannot-be-locked", held.Condition.ToString(), "a session that is held");
        var without = await Refusal(attached =>
            new ReceiverLink(session, "fourth", new Source { Address = queue }, attached));
        Expect.Equal(ErrorCode.NotAllowed, without.Condition.ToString(), "a receiver without a session");
        await connection.CloseAsync();
    }

    [Test("a message of format 0x80013700 is as many messages as it has data sections")]
    public static async Task Batch()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        var parts = Enumerable.Range(0, 3).Select(n =>
        {
            var buffer = new Message($"part {n}") { Properties = new Properties { MessageId = $"id {n}" } }.Encode();
            return new Data { Binary = buffer.Buffer.AsSpan(buffer.Offset, buffer.Length).ToArray() };
        });
        var batch = new Message { Format = 0x80013700, BodySection = new DataList { } };
        foreach (var part in parts)
        {
            ((DataList)batch.BodySection).Add(part);
        }
        var sender = new SenderLink(session, "sender", queue);
        await sender.SendAsync(batch, Soon);
        var receiver = new ReceiverLink(session, "receiver", queue);
        receiver.SetCredit(10, CreditMode.Manual);
        for (var n = 0; n < 3; n++)
        {
            var message = await Next(receiver);
            Expect.Equal($"part {n}", message.Body, "the body");
            Expect.Equal($"id {n}", message.Properties.MessageId, "the message-id");
            receiver.Accept(message);
        }
        Expect.Equal(null, await receiver.ReceiveAsync(Brief), "a fourth message");
        await connection.CloseAsync();
    }

    [Test("bodies and properties of every type come back with their types")]
    public static async Task Types()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        var sender = new SenderLink(session, "sender", queue);
        var receiver = new ReceiverLink(session, "receiver", queue);
        receiver.SetCredit(20, CreditMode.Manual);
        var time = DateTime.UnixEpoch.AddMilliseconds(1_700_000_000_123);
        object[] values =
        [
            true, (byte)200, (ushort)60_000, 4_000_000_000u, 1UL << 63, (sbyte)-7, (short)-30_000, -2_000_000_000,
                long.MinValue,
            1.5f, -2.25d, 'x', time, Guid.Parse("00112233-4455-6677-8899-aabbccddeeff"), new byte[] { 0, 1, 255 },
                "text", new Symbol("symbol"),
        ];
        foreach (var value in values)
        {
            await sender.SendAsync(new Message { BodySection = new AmqpValue { Value = value },
                ApplicationProperties = new ApplicationProperties { ["v"] = value } }, Soon);
            var message = await Next(receiver);
            receiver.Accept(message);
            receiver.SetCredit(20, CreditMode.Manual);
            foreach (var found in new[] { message.Body, message.ApplicationProperties["v"] })
            {
                Expect.Equal(value.GetType(), found.GetType(), $"the type of {value}");
                Expect.True(value is byte[] bytes ? bytes.AsSpan().SequenceEqual((byte[])found) : value.Equals(found),
                    $"{value} came back as {found}");
            }
        }
        var sequence = new List { 1, "two", new List { 3.0 }, new Map { ["four"] = 4L } };
        await sender.SendAsync(new Message { BodySection = new AmqpSequence { List = sequence } }, Soon);
        var list = (System.Collections.IList)(await Next(receiver)).Body;
        Expect.Equal(4, list.Count, "the elements of a sequence");
        Expect.Equal(3.0, ((List)list[2]!)[0], "a list in a sequence");
        Expect.Equal(4L, ((Map)list[3]!)["four"], "a map in a sequence");
        await connection.CloseAsync();
    }
}

using System.Text;
using Amqp;
using Amqp.Framing;
using Amqp.Sasl;
using Amqp.Transactions;
using Amqp.Types;
using static Interop.Lite.Broker;

namespace Interop.Lite;

/// <summary>Nodes that answer requests, tokens, and transactions.</summary>
public static class Requests
{
    [Test("$management answers each of several pairs at the address that its client made up")]
    public static async Task Management()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        await Send(session, queue, "a", "b", "c");
        var pairs = new List<Node>();
        foreach (var n in Enumerable.Range(0, 8))
        {
            pairs.Add(await Node.Open(n % 2 == 0 ? session : new Session(connection), $"{queue}/$management"));
        }
        await Task.WhenAll(pairs.Select(async (node, n) =>
        {
            var count = n % 3 + 1;
            var answer = await node.Ask("com.microsoft:peek-message",
                new Map { ["from-sequence-number"] = 1L, ["message-count"] = count });
            Expect.Equal(200, (int)answer.ApplicationProperties["statusCode"], "the code of a peek");
            Expect.Equal(count, ((List)((Map)answer.Body)["messages"]).Count, "the messages of a peek");
        }));
        var unknown = await pairs[0].Ask("com.microsoft:no-such-operation", new Map());
        Expect.Equal(501, (int)unknown.ApplicationProperties["statusCode"], "an unknown operation");
        Expect.Equal("amqp:not-implemented", unknown.ApplicationProperties["errorCondition"]?.ToString(),
            "its condition");
        await connection.CloseAsync();
    }

    [Test("a receiver with a dynamic source is told an address, to which any connection may send")]
    public static async Task Dynamic()
    {
        var (one, other) = (await Connect(), await Connect());
        var answer = new TaskCompletionSource<Attach>(TaskCreationOptions.RunContinuationsAsynchronously);
        var receiver = new ReceiverLink(
            new Session(one), "receiver", new Source { Dynamic = true }, (_, attach) => answer.TrySetResult(attach));
        var address = ((Source)(await answer.Task.WaitAsync(Soon)).Source).Address;
        Expect.True(!string.IsNullOrEmpty(address), "no address");
        receiver.SetCredit(1);
        var session = new Session(other);
        await Send(session, address, "hello");
        Expect.Equal("hello", (await Next(receiver)).Body, "the message");
        await receiver.CloseAsync();
        // The node lives as long as the link.
        var gone = await Refusal(attached =>
            new SenderLink(session, "late", new Target { Address = address }, attached));
        Expect.Equal(ErrorCode.NotFound, gone.Condition.ToString(), "the address after its link was closed");
        await one.CloseAsync();
        await other.CloseAsync();
    }

    [Test("ANONYMOUS opens nothing but $cbs, until a token was put at it")]
    public static async Task Tokens()
    {
        var connection = await ConnectTo($"amqp://127.0.0.1:{SecuredAmqpPort}", SaslProfile.Anonymous);
        var session = new Session(connection);
        var refused = await Refusal(attached =>
            new SenderLink(session, "early", new Target { Address = "lite" }, attached));
        Expect.Equal(ErrorCode.UnauthorizedAccess, refused.Condition.ToString(), "a sender without a token");
        await using (var tokens = await Node.Open(session, "$cbs", "an address of mine"))
        {
            Expect.Equal(401, await tokens.PutToken(
                "sb://localhost/lite", Signature("sb://localhost/lite", RootName, "a wrong key")), "a wrong key");
            var code = await tokens.PutToken(
                "sb://localhost/lite", Signature("sb://localhost/lite", "listener", ListenerKey));
            Expect.Equal(202, code, "a key that may listen");
            refused = await Refusal(attached =>
                new SenderLink(session, "listening", new Target { Address = "lite" }, attached));
            Expect.Equal(ErrorCode.UnauthorizedAccess, refused.Condition.ToString(), "a sender with a token to listen");
            Expect.Equal(202, await tokens.PutToken(
                "sb://localhost/lite", Signature("sb://localhost/lite", RootName, RootKey)), "a key that may all");
        }
        await Send(session, "lite", "a");
        var receiver = new ReceiverLink(session, "receiver", "lite");
        receiver.SetCredit(1, CreditMode.Manual);
        var message = await Next(receiver);
        Expect.Equal("a", message.Body, "the message");
        receiver.Accept(message);
        await receiver.CloseAsync();
        refused = await Refusal(attached =>
            new ReceiverLink(session, "other", new Source { Address = "lite-other" }, attached));
        Expect.Equal(ErrorCode.UnauthorizedAccess, refused.Condition.ToString(), "an entity that the token is not for");
        await connection.CloseAsync();
    }

    /// <summary>A coordinator's link, and a transaction's id.</summary>
    private sealed class Coordinator(Session session)
    {
        private readonly SenderLink link = new(session, $"coordinator-{Guid.NewGuid()}", new Attach
        {
            Source = new Source(),
            Target = new Amqp.Transactions.Coordinator { Capabilities = [TxnCapabilities.LocalTransactions] },
        }, null);

        private async Task<Outcome> Ask(object body)
        {
            var answer = new TaskCompletionSource<Outcome>(TaskCreationOptions.RunContinuationsAsynchronously);
            var message = new Message { BodySection = new AmqpValue { Value = body } };
            link.Send(message, null, (_, _, outcome, _) => answer.TrySetResult(outcome), null);
            return await answer.Task.WaitAsync(Soon);
        }

        public async Task<byte[]> Declare() => await Ask(new Declare()) is Declared declared
            ? declared.TxnId : throw new Unexpected("no transaction was declared");

        public Task<Outcome> Discharge(byte[] id, bool fail = false) => Ask(new Discharge { TxnId = id, Fail = fail });
    }

    private static async Task<DeliveryState> SendIn(SenderLink sender, byte[] id, string text)
    {
        var answer = new TaskCompletionSource<Outcome>(TaskCreationOptions.RunContinuationsAsynchronously);
        sender.Send(new Message(text), new TransactionalState { TxnId = id },
            (_, _, outcome, _) => answer.TrySetResult(outcome), null);
        return await answer.Task.WaitAsync(Soon);
    }

    [Test("a transaction that is declared and discharged by hand commits sends and settlements together")]
    public static async Task Commit()
    {
        var queue = await Queue();
        var (connection, aside) = (await Connect(), await Connect());
        var (session, other) = (new Session(connection), new Session(aside));
        await Send(other, queue, "incoming");
        var coordinator = new Coordinator(session);
        var id = await coordinator.Declare();
        Expect.True(id.Length is > 0 and <= 32, $"a transaction's id of {id.Length} bytes");
        var receiver = new ReceiverLink(session, "receiver", queue);
        receiver.SetCredit(1, CreditMode.Manual);
        var incoming = await Next(receiver);
        receiver.Complete(incoming, new TransactionalState { TxnId = id, Outcome = new Accepted() });
        var sender = new SenderLink(session, "sender", queue);
        await SendIn(sender, id, "outgoing");
        Expect.Equal(1, await Count(other, queue), "messages before the commit");
        Expect.True(await coordinator.Discharge(id) is Accepted, "the commit was not accepted");
        await receiver.CloseAsync();
        var after = new ReceiverLink(other, "after", queue);
        after.SetCredit(2, CreditMode.Manual);
        Expect.Equal("outgoing", (await Next(after)).Body, "the message that was sent");
        Expect.Equal(null, await after.ReceiveAsync(Brief), "the message that was completed");
        await connection.CloseAsync();
        await aside.CloseAsync();
    }

    [Test("a transaction that fails, or whose connection ends, leaves nothing; an unknown one is refused")]
    public static async Task Rollback()
    {
        var queue = await Queue();
        var (connection, aside) = (await Connect(), await Connect());
        var (session, other) = (new Session(connection), new Session(aside));
        await Send(other, queue, "incoming");
        var coordinator = new Coordinator(session);
        var id = await coordinator.Declare();
        var receiver = new ReceiverLink(session, "receiver", queue);
        receiver.SetCredit(1, CreditMode.Manual);
        var incoming = await Next(receiver);
        receiver.Complete(incoming, new TransactionalState { TxnId = id, Outcome = new Accepted() });
        var sender = new SenderLink(session, "sender", queue);
        await SendIn(sender, id, "outgoing");
        Expect.True(await coordinator.Discharge(id, fail: true) is Accepted, "the rollback was not accepted");
        Expect.Equal(1, await Count(other, queue), "messages after the rollback");

        var again = await coordinator.Discharge(id);
        Expect.Equal("amqp:transaction:unknown-id", (again as Rejected)?.Error?.Condition?.ToString(),
            "a discharge that comes twice");
        var unknown = await SendIn(sender, Encoding.ASCII.GetBytes("no such id"), "lost");
        Expect.Equal("amqp:transaction:unknown-id", (unknown as Rejected)?.Error?.Condition?.ToString(),
            "a send in an unknown transaction");

        var last = await coordinator.Declare();
        await SendIn(sender, last, "never committed");
        await connection.CloseAsync();
        Expect.Equal(1, await Count(other, queue), "messages after the connection's end");
        await aside.CloseAsync();
    }
}

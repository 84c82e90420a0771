using System.Buffers.Binary;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using Amqp;
using Amqp.Framing;
using Amqp.Sasl;
using Amqp.Types;
using static Interop.Lite.Broker;

namespace Interop.Lite;

/// <summary>SASL, TLS, WebSockets, frames, and connections that break.</summary>
public static class Transports
{
    [Test("SASL PLAIN with a key needs no token, and a wrong key is refused by the outcome")]
    public static async Task Plain()
    {
        var connection = await ConnectTo(
            $"amqp://{RootName}:{Uri.EscapeDataString(RootKey)}@127.0.0.1:{SecuredAmqpPort}", null);
        var session = new Session(connection);
        await Send(session, "lite-other", "a");
        var receiver = new ReceiverLink(session, "receiver", "lite-other");
        receiver.SetCredit(1, CreditMode.Manual);
        var message = await Next(receiver);
        Expect.Equal("a", message.Body, "the message");
        receiver.Accept(message);
        await connection.CloseAsync();

        var listening = await ConnectTo(
            $"amqp://listener:{Uri.EscapeDataString(ListenerKey)}@127.0.0.1:{SecuredAmqpPort}", null);
        var refused = await Refusal(attached =>
            new SenderLink(new Session(listening), "s", new Target { Address = "lite-other" }, attached));
        Expect.Equal(ErrorCode.UnauthorizedAccess, refused.Condition.ToString(), "a sender with a key to listen");
        await listening.CloseAsync();
        try
        {
            await ConnectTo($"amqp://{RootName}:wrong@127.0.0.1:{SecuredAmqpPort}", null).WaitAsync(Soon);
        }
        catch (AmqpException error)
        {
            Expect.Equal(ErrorCode.UnauthorizedAccess, error.Error.Condition.ToString(),
                "the condition of a wrong key");
            return;
        }
        throw new Unexpected("a wrong key was taken");
    }

    [Test("a connection without SASL is taken where any key is, and may do nothing where keys are verified")]
    public static async Task Bare()
    {
        var queue = await Queue();
        var connection = await ConnectTo($"amqp://127.0.0.1:{AmqpPort}", null);
        var session = new Session(connection);
        await Send(session, queue, "a");
        Expect.Equal(1, await Count(session, queue), "messages");
        await connection.CloseAsync();

        var secured = await ConnectTo($"amqp://127.0.0.1:{SecuredAmqpPort}", null);
        var refused = await Refusal(attached =>
            new SenderLink(new Session(secured), "s", new Target { Address = "lite" }, attached));
        Expect.Equal(ErrorCode.UnauthorizedAccess, refused.Condition.ToString(), "a sender");
        await secured.CloseAsync();
    }

    [Test("TLS at 5671 shows a certificate of the authority for the name that was dialled")]
    public static async Task Tls()
    {
        var authority = X509CertificateLoader.LoadCertificateFromFile(
            Path.Combine(Environment.GetEnvironmentVariable("JITNEY_SECURED_CERTIFICATES")!, "ca.pem"));
        var factory = new ConnectionFactory();
        var errors = new List<SslPolicyErrors>();
        factory.SSL.RemoteCertificateValidationCallback = (_, certificate, _, found) =>
        {
            errors.Add(found);
            using var chain = new X509Chain();
            chain.ChainPolicy.TrustMode = X509ChainTrustMode.CustomRootTrust;
            chain.ChainPolicy.CustomTrustStore.Add(authority);
            chain.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
            return chain.Build((X509Certificate2)certificate!)
                && !found.HasFlag(SslPolicyErrors.RemoteCertificateNameMismatch);
        };
        var address = new Address($"amqps://{RootName}:{Uri.EscapeDataString(RootKey)}@{SecuredAddress}:5671");
        var connection = await factory.CreateAsync(address);
        Expect.Equal(1, errors.Count, "calls of the validation");
        await Send(new Session(connection), "lite-other", "by TLS");
        var receiver = new ReceiverLink(new Session(connection), "receiver", "lite-other");
        receiver.SetCredit(1, CreditMode.Manual);
        var message = await Next(receiver);
        Expect.Equal("by TLS", message.Body, "the message");
        receiver.Accept(message);
        await connection.CloseAsync();
    }

    [Test("SASL EXTERNAL gives a client what the rule of its certificate's name does")]
    public static async Task External()
    {
        var certificates = Environment.GetEnvironmentVariable("JITNEY_SECURED_CERTIFICATES")!;

        Task<Connection> By(string name)
        {
            var factory = new ConnectionFactory();
            var (certificate, key) = (Path.Combine(certificates, $"{name}.pem"),
                Path.Combine(certificates, $"{name}.key"));
            factory.SSL.ClientCertificates.Add(X509Certificate2.CreateFromPemFile(certificate, key));
            // The test of TLS looks at the broker's certificate.
            factory.SSL.RemoteCertificateValidationCallback = (_, _, _, _) => true;
            factory.SASL.Profile = SaslProfile.External;
            return factory.CreateAsync(new Address($"amqps://{SecuredAddress}:5671")).WaitAsync(Soon);
        }

        var connection = await By("listener");
        var session = new Session(connection);
        var answer = new TaskCompletionSource<Attach>(TaskCreationOptions.RunContinuationsAsynchronously);
        var source = new Source { Address = "lite-other" };
        _ = new ReceiverLink(session, "receiver", source, (_, attach) => answer.TrySetResult(attach));
        Expect.Equal("lite-other", ((Source)(await answer.Task.WaitAsync(Soon)).Source)?.Address,
            "the receiver's source");
        var refused = await Refusal(attached =>
            new SenderLink(session, "sender", new Target { Address = "lite-other" }, attached));
        Expect.Equal(ErrorCode.UnauthorizedAccess, refused.Condition.ToString(), "a sender");
        await connection.CloseAsync();
        try
        {
            await By("nobody");
        }
        catch (AmqpException error)
        {
            Expect.Equal(ErrorCode.UnauthorizedAccess, error.Error.Condition.ToString(), "a name without a rule");
            return;
        }
        throw new Unexpected("a name without a rule was taken");
    }

    [Test("WebSockets carry the same, with the subprotocol of AMQP")]
    public static async Task WebSockets()
    {
        var queue = await Queue();
        var factory = new ConnectionFactory([new WebSocketTransportFactory("amqp")]);
        var address = new Address($"ws://{RootName}:any@127.0.0.1:{AmqpPort}/$servicebus/websocket");
        var connection = await factory.CreateAsync(address);
        var session = new Session(connection);
        var text = new string('x', 200_000);
        await Send(session, queue, text);
        var receiver = new ReceiverLink(session, "receiver", queue);
        receiver.SetCredit(1, CreditMode.Manual);
        Expect.Equal(text, (await Next(receiver)).Body, "a message of several frames");
        await connection.CloseAsync();
    }

    [Test("a client's small max-frame-size is kept to, and its messages of many frames arrive whole")]
    public static async Task SmallFrames()
    {
        var queue = await Queue();
        var said = new TaskCompletionSource<Open>(TaskCreationOptions.RunContinuationsAsynchronously);
        var open = new Open { ContainerId = "small", HostName = "localhost", MaxFrameSize = 512 };
        await using var relay = Relay.Start(AmqpPort);
        var connection = await Connect(relay.Port, open, (_, answer) => said.TrySetResult(answer));
        Expect.True((await said.Task.WaitAsync(Soon)).MaxFrameSize >= 512, "the broker's max-frame-size");
        var session = new Session(connection);
        var text = string.Concat(Enumerable.Range(0, 30_000).Select(n => (char)('a' + n % 26)));
        await Send(session, queue, text);
        var receiver = new ReceiverLink(session, "receiver", queue);
        receiver.SetCredit(1, CreditMode.Manual);
        Expect.Equal(text, (await Next(receiver)).Body, "the message");
        Expect.True(relay.LargestFrame <= 512, $"a frame of {relay.LargestFrame} bytes");
        Expect.True(relay.Frames > 60, $"{relay.Frames} frames");
        await connection.CloseAsync();
    }

    [Test("a client that wants to hear of the broker each second is sent empty frames, and stays connected")]
    public static async Task Idle()
    {
        await using var relay = Relay.Start(AmqpPort);
        var connection = await Connect(
            relay.Port, new Open { ContainerId = "idle", HostName = "localhost", IdleTimeOut = 1000 });
        _ = new Session(connection);
        var before = relay.Frames;
        // The client would close the connection after a silence of its time-out.
        await Expect.Until(() => relay.Frames >= before + 5, "five frames");
        Expect.True(!connection.IsClosed, "the connection was closed");
        var queue = await Queue();
        await Send(new Session(connection), queue, "after the silence");
        await connection.CloseAsync();
    }

    [Test("a frame that is larger than the broker takes ends the connection with a framing error")]
    public static async Task LargeFrame()
    {
        using var client = new TcpClient();
        await client.ConnectAsync(IPAddress.Loopback, AmqpPort);
        var stream = client.GetStream();
        await stream.WriteAsync("AMQP\0\u0001\0\0"u8.ToArray());
        // A header that announces 16 MiB, before any open.
        byte[] frame = new byte[64];
        BinaryPrimitives.WriteInt32BigEndian(frame, 16 << 20);
        frame[4] = 2;
        await stream.WriteAsync(frame);
        var answer = new MemoryStream();
        using var limit = new CancellationTokenSource(Soon);
        try
        {
            await stream.CopyToAsync(answer, limit.Token);
        }
        catch (IOException)
        {
            // A reset: the broker did not read what it had refused.
        }
        Expect.True(!limit.IsCancellationRequested, "the connection stayed open");
        var text = Encoding.Latin1.GetString(answer.ToArray());
        Expect.True(text.Contains("amqp:connection:framing-error"), $"no framing error in {answer.Length} bytes");
    }

    [Test("a message that is larger than its entity takes is rejected, and smaller ones are taken after it")]
    public static async Task LargeMessage()
    {
        var queue = await Queue();
        var connection = await Connect();
        var session = new Session(connection);
        var answer = new TaskCompletionSource<Attach>(TaskCreationOptions.RunContinuationsAsynchronously);
        var sender = new SenderLink(session, "sender", new Target { Address = queue },
            (_, attach) => answer.TrySetResult(attach));
        var largest = (int)Math.Min((await answer.Task.WaitAsync(Soon)).MaxMessageSize, 200_000_000);
        try
        {
            await sender.SendAsync(new Message { BodySection = new Data { Binary = new byte[largest + 1] } }, Soon);
            throw new Unexpected("the message was taken");
        }
        catch (AmqpException error)
        {
            Expect.Equal(ErrorCode.MessageSizeExceeded, error.Error.Condition.ToString(), "the condition");
        }
        await Send(session, queue, "small");
        Expect.Equal(1, await Count(session, queue), "messages");
        await connection.CloseAsync();
    }

    [Test("a connection that is reset in the middle of a transfer leaves nothing of it, and what came before is there")]
    public static async Task Reset()
    {
        var queue = await Queue();
        await using var relay = Relay.Start(AmqpPort);
        var connection = await Connect(relay.Port);
        var session = new Session(connection);
        var sender = new SenderLink(session, "sender", queue);
        await sender.SendAsync(new Message("before"), Soon);
        relay.ResetAfter = 400_000;
        var closed = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
        connection.AddClosedCallback((_, _) => closed.TrySetResult());
        sender.Send(new Message { BodySection = new Data { Binary = new byte[900_000] } }, null, null);
        await closed.Task.WaitAsync(Soon);
        Expect.True(relay.Passed >= 400_000, "the connection was reset before the transfer");

        var fresh = await Connect();
        var aside = new Session(fresh);
        Expect.Equal(1, await Count(aside, queue), "messages");
        await Send(aside, queue, "after");
        var receiver = new ReceiverLink(aside, "receiver", queue);
        receiver.SetCredit(2, CreditMode.Manual);
        Expect.Equal("before", (await Next(receiver)).Body, "the message before");
        Expect.Equal("after", (await Next(receiver)).Body, "the message after");
        await fresh.CloseAsync();
    }

    [Test("deliveries of a connection that is reset keep their locks, and their number rises when these end")]
    public static async Task ResetWhileReceiving()
    {
        var queue = await Queue("<LockDuration>PT2S</LockDuration>");
        await using var relay = Relay.Start(AmqpPort);
        var connection = await Connect(relay.Port);
        var session = new Session(connection);
        await Send(session, queue, "a");
        var receiver = new ReceiverLink(session, "receiver", queue);
        receiver.SetCredit(1, CreditMode.Manual);
        Expect.Equal(0u, (await Next(receiver)).Header.DeliveryCount, "the first delivery-count");
        relay.Reset();
        var fresh = await Connect();
        var other = new ReceiverLink(new Session(fresh), "receiver", queue);
        other.SetCredit(1, CreditMode.Manual);
        Expect.Equal(null, await other.ReceiveAsync(Brief), "a message that is locked");
        var message = await Next(other);
        Expect.Equal("a", message.Body, "the message");
        Expect.Equal(1u, message.Header.DeliveryCount, "the second delivery-count");
        other.Accept(message);
        await fresh.CloseAsync();
    }
}

using System.Net;
using System.Net.Http.Headers;
using System.Security.Cryptography;
using System.Text;
using Amqp;
using Amqp.Framing;
using Amqp.Sasl;
using Amqp.Types;

namespace Interop.Lite;

/// <summary>The suite's brokers, as the runner names them, and the pieces of a Service Bus SDK.</summary>
public static class Broker
{
    public static readonly TimeSpan Soon = TimeSpan.FromSeconds(10);
    /// <summary>Long enough for what must not come.</summary>
    public static readonly TimeSpan Brief = TimeSpan.FromMilliseconds(300);

    public const string RootName = "RootManageSharedAccessKey";
    /// <summary>Keys of the secured broker (secured.py).</summary>
    public const string RootKey = "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==";
    public const string ListenerKey = "bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=";

    public static readonly int AmqpPort = int.Parse(Variable("JITNEY_AMQP_PORT"));
    private static readonly int HttpPort = int.Parse(Variable("JITNEY_HTTP_PORT"));
    public static readonly string SecuredAddress = Variable("JITNEY_SECURED_ADDRESS");
    public static readonly int SecuredAmqpPort = int.Parse(Variable("JITNEY_SECURED_AMQP_PORT"));

    private static readonly HttpClient Http = new();

    private static string Variable(string name) =>
        Environment.GetEnvironmentVariable(name)
            ?? throw new Unexpected($"{name} is not set: start this by interop-tests/run");

    /// <summary>A connection to the broker that takes any key.</summary>
    public static Task<Connection> Connect(int? port = null, Open? open = null, OnOpened? opened = null) =>
        ConnectTo($"amqp://127.0.0.1:{port ?? AmqpPort}", SaslProfile.Anonymous, open, opened);

    public static async Task<Connection> ConnectTo(
        string address, SaslProfile? sasl, Open? open = null, OnOpened? opened = null)
    {
        var factory = new ConnectionFactory();
        factory.SASL.Profile = sasl;
        return await factory.CreateAsync(new Address(address),
            open ?? new Open { ContainerId = Guid.NewGuid().ToString(), HostName = "localhost" }, opened);
    }

    /// <summary>Makes an entity of its own for a test, by the administration API.</summary>
    public static async Task<string> Queue(string properties = "")
    {
        var name = $"lite-{Guid.NewGuid():N}";
        await Put(name, "QueueDescription", properties);
        return name;
    }

    /// <summary>Makes an entity. The elements of a description have to be in the order of the API's schema.</summary>
    public static async Task Put(string path, string kind, string properties = "")
    {
        var body = $"""
            <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">
            <{kind} xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">{properties}</{kind}>
            </content></entry>
            """;
        var request = new HttpRequestMessage(HttpMethod.Put, $"http://127.0.0.1:{HttpPort}/{path}?api-version=2021-05")
        {
            Content = new StringContent(body, Encoding.UTF8, new MediaTypeHeaderValue("application/atom+xml")),
        };
        request.Headers.TryAddWithoutValidation(
            "Authorization", Signature($"http://127.0.0.1:{HttpPort}/{path}", RootName, "any"));
        using var answer = await Http.SendAsync(request);
        Expect.Equal(HttpStatusCode.Created, answer.StatusCode,
            $"PUT {path}: {await answer.Content.ReadAsStringAsync()}");
    }

    /// <summary>A shared access signature.</summary>
    public static string Signature(string resource, string name, string key)
    {
        var until = DateTimeOffset.UtcNow.AddHours(1).ToUnixTimeSeconds();
        var encoded = WebUtility.UrlEncode(resource);
        var digest = HMACSHA256.HashData(Encoding.UTF8.GetBytes(key), Encoding.UTF8.GetBytes($"{encoded}\n{until}"));
        var signed = WebUtility.UrlEncode(Convert.ToBase64String(digest));
        return $"SharedAccessSignature sr={encoded}&sig={signed}&se={until}&skn={name}";
    }

    public static async Task Send(Session session, string entity, params string[] texts)
    {
        var sender = new SenderLink(session, $"sender-{Guid.NewGuid()}", entity);
        foreach (var text in texts)
        {
            await sender.SendAsync(new Message(text), Soon);
        }
        await sender.CloseAsync();
    }

    /// <summary>The next message, which must be there.</summary>
    public static async Task<Message> Next(ReceiverLink receiver) =>
        await receiver.ReceiveAsync(Soon) ?? throw new Unexpected("no message came");

    /// <summary>How many messages a peek finds: at most 100.</summary>
    public static async Task<int> Count(Session session, string entity)
    {
        await using var node = await Node.Open(session, $"{entity}/$management");
        var answer = await node.Ask("com.microsoft:peek-message",
            new Map { ["from-sequence-number"] = 1L, ["message-count"] = 100 });
        return (int)answer.ApplicationProperties["statusCode"] == 204 ? 0
            : ((List)((Map)answer.Body)["messages"]).Count;
    }

    /// <summary>Attaches, and returns the error with which the broker refuses; fails if it does not.</summary>
    public static async Task<Error> Refusal(Func<OnAttached, Link> attach)
    {
        var closed = new TaskCompletionSource<Error>(TaskCreationOptions.RunContinuationsAsynchronously);
        var link = attach((_, _) => { });
        link.AddClosedCallback((_, error) => closed.TrySetResult(error));
        return await closed.Task.WaitAsync(Soon) ?? throw new Unexpected("the link was closed without an error");
    }
}

/// <summary>A pair of links to a node that answers requests: `$cbs` or `ENTITY/$management`.</summary>
public sealed class Node : IAsyncDisposable
{
    private readonly SenderLink sender;
    private readonly ReceiverLink receiver;
    private readonly string replyTo;

    private Node(SenderLink sender, ReceiverLink receiver, string replyTo) =>
        (this.sender, this.receiver, this.replyTo) = (sender, receiver, replyTo);

    /// <summary>Opens the pair; answers come to the given address, which is the target of the receiver link.</summary>
    public static async Task<Node> Open(Session session, string address, string? replyTo = null)
    {
        replyTo ??= $"reply-{Guid.NewGuid():N}";
        var attached = new TaskCompletionSource<Attach>(TaskCreationOptions.RunContinuationsAsynchronously);
        var sender = new SenderLink(session, $"requests-{Guid.NewGuid()}", address);
        var attach = new Attach { Source = new Source { Address = address },
            Target = new Target { Address = replyTo } };
        var receiver = new ReceiverLink(
            session, $"answers-{Guid.NewGuid()}", attach, (_, answer) => attached.TrySetResult(answer));
        receiver.SetCredit(10);
        var answer = await attached.Task.WaitAsync(Broker.Soon);
        Expect.Equal(replyTo, ((Target)answer.Target).Address, "the address for answers");
        return new Node(sender, receiver, replyTo);
    }

    public async Task<Message> Ask(string operation, object body, IDictionary<string, object>? properties = null)
    {
        var request = new Message { BodySection = new AmqpValue { Value = body } };
        request.Properties = new Properties { MessageId = Guid.NewGuid().ToString(), ReplyTo = replyTo };
        request.ApplicationProperties = new ApplicationProperties { ["operation"] = operation };
        foreach (var (key, value) in properties ?? new Dictionary<string, object>())
        {
            request.ApplicationProperties[key] = value;
        }
        await sender.SendAsync(request, Broker.Soon);
        var answer = await Broker.Next(receiver);
        receiver.Accept(answer);
        Expect.Equal(request.Properties.MessageId, answer.Properties.CorrelationId, "the correlation-id");
        return answer;
    }

    /// <summary>Puts a token; returns the code of the answer.</summary>
    public async Task<int> PutToken(string audience, string token)
    {
        var answer = await Ask("put-token", token, new Dictionary<string,
            object> { ["type"] = "servicebus.windows.net:sastoken", ["name"] = audience });
        return (int)answer.ApplicationProperties["status-code"];
    }

    public async ValueTask DisposeAsync()
    {
        await sender.CloseAsync();
        await receiver.CloseAsync();
    }
}

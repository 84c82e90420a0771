using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;

namespace Interop;

class Transports : SecuredScenarios
{
    /// <summary>
    /// Every way to the secured broker. The SDK takes 5671 or 443 whatever port the connection string has; that of a
    /// custom endpoint it takes.
    /// </summary>
    static readonly (string Host, string? CustomEndpoint)[] Ways =
    [
        (Secured.Address, null), ($"{Secured.Address}:443", null),
        ("production.invalid", $"sb://{Secured.Address}:5671"),
        ("production.invalid", $"https://{Secured.Address}:443"), ("localhost", $"sb://localhost:{Secured.AmqpPort}"),
        ("localhost", $"sb://localhost:{Secured.HttpPort}"),
    ];

    ServiceBusClient By(string host, string? customEndpoint, ServiceBusClientOptions options)
    {
        options.CustomEndpointAddress = customEndpoint == null ? null : new Uri(customEndpoint);
        return Connect(Secured.With(Secured.Root, Secured.RootKey, host), options);
    }

    [Scenario("S261", "AMQPS on every port")]
    public async Task AmqpsOnEveryPort()
    {
        await Administrator.CreateQueueAsync("s261");
        foreach (var (host, customEndpoint) in Ways)
        {
            await RoundTrip(By(host, customEndpoint, Options()), "s261");
        }
    }

    [Scenario("S262", "a client that does not trust the authority is not served")]
    public async Task AClientThatDoesNotTrustTheAuthorityIsNotServed()
    {
        await Administrator.CreateQueueAsync("s262");
        var trusting = Once();
        trusting.CertificateValidationCallback = (_, certificate, _, _) =>
        {
            // No authority at all is trusted.
            using var chain = new X509Chain();
            chain.ChainPolicy.TrustMode = X509ChainTrustMode.CustomRootTrust;
            chain.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
            return chain.Build(new X509Certificate2(certificate!));
        };
        // A name that the certificate does not have.
        var address = $"sb://127.0.0.1:{Secured.AmqpPort}";
        foreach (var client in new[]
        {
            By(Secured.Address, null, trusting), By("127.0.0.1", address, Once()),
            By("127.0.0.1", address, OverWebSockets()),
        })
        {
            var failure = await FailureOf(() => client.CreateSender("s262").SendMessageAsync(Message(1)));
            Check.True(failure?.ToString().Contains(nameof(AuthenticationException)) == true, $"{failure}");
        }
        Check.Equal(0, (await Administrator.GetQueueRuntimePropertiesAsync("s262")).Value.TotalMessageCount);
    }

    [Scenario("S263", "WebSockets on every port")]
    public async Task WebSocketsOnEveryPort()
    {
        await Administrator.CreateQueueAsync("s263");
        foreach (var (host, customEndpoint) in Ways)
        {
            await RoundTrip(By(host, customEndpoint, OverWebSockets()), "s263");
        }
        // The emulator's connection string means WebSockets without TLS.
        await RoundTrip(Connect(options: OverWebSockets()), "s263g");
        var emulators = Secured.With(Secured.Root, Secured.RootKey, $"localhost:{Secured.HttpPort}");
        await RoundTrip(Connect($"{emulators};UseDevelopmentEmulator=true", OverWebSockets()), "s263");
    }

    [Scenario("S263", "sessions and batches over a WebSocket")]
    public async Task SessionsAndBatchesOverAWebSocket()
    {
        await Administrator.CreateQueueAsync(new CreateQueueOptions("s263s") { RequiresSession = true });
        var client = Connect(Secured.ConnectionString, OverWebSockets());
        await client.CreateSender("s263s").SendMessagesAsync(Texts(1, 100).Select(body => InSession("x", body)));
        var receiver = await client.AcceptNextSessionAsync("s263s");
        var messages = await Receive(receiver, 100);
        Check.Equal(Texts(1, 100), Bodies(messages));
        await receiver.SetSessionStateAsync(new BinaryData(Pattern(100 * 1024)));
        Check.Equal(Pattern(100 * 1024), (await receiver.GetSessionStateAsync()).ToArray());
        await CompleteAll(receiver, messages);
    }

    [Scenario("S263", "messages of many sizes over a WebSocket")]
    public async Task MessagesOfManySizesOverAWebSocket()
    {
        await Administrator.CreateQueueAsync("s263m");
        var client = Connect(Secured.ConnectionString, OverWebSockets());
        var sender = client.CreateSender("s263m");
        var sizes = Enumerable.Range(0, 300).Select(n => n * n % 20_011 + 1).ToList();
        foreach (var ten in sizes.Chunk(10))
        {
            await sender.SendMessagesAsync(ten.Select(OfSize));
        }
        var options = Destructive;
        options.PrefetchCount = 200;
        var messages = await Receive(client.CreateReceiver("s263m", options), sizes.Count);
        foreach (var (size, message) in sizes.Zip(messages))
        {
            Check.Equal(Pattern(size), message.Body.ToArray());
        }
    }
}

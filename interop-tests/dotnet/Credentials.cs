using System.Collections.Concurrent;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using Azure;
using Azure.Core;

namespace Interop;

/// <summary>Every way in that the SDK has: transports, addresses, certificates, keys, signatures and tokens.</summary>
class Credentials : Scenarios
{
    /// <summary>What a client needs to reach the secured broker by the name of a namespace.</summary>
    static ServiceBusClientOptions By(ServiceBusTransportType transport = ServiceBusTransportType.AmqpTcp) =>
        new() { TransportType = transport,
            RetryOptions = { TryTimeout = Deadline, Delay = Seconds(0.2), MaxRetries = 1 } };

    static readonly ServiceBusAdministrationClient Administrator = Secured.Administration;

    static async Task<string> Queue(string name, params AuthorizationRule[] rules)
    {
        var options = new CreateQueueOptions(name);
        options.AuthorizationRules.AddRange(rules);
        await Administrator.CreateQueueAsync(options);
        return name;
    }

    static async Task Refused(ServiceBusClient client, string queue)
    {
        await Check.Throws<UnauthorizedAccessException>(
            () => client.CreateSender(queue).SendMessageAsync(Message("no")));
        await Check.Throws<UnauthorizedAccessException>(
            () => client.CreateReceiver(queue).ReceiveMessageAsync(Seconds(5)));
        await Check.Throws<UnauthorizedAccessException>(() => client.CreateReceiver(queue).PeekMessageAsync());
    }

    static string Signature(string resource, string name, string key, TimeSpan life)
    {
        var until = (Now + life).ToUnixTimeSeconds();
        var encoded = WebUtility.UrlEncode(resource);
        var digest = HMACSHA256.HashData(Encoding.UTF8.GetBytes(key), Encoding.UTF8.GetBytes($"{encoded}\n{until}"));
        var signed = WebUtility.UrlEncode(Convert.ToBase64String(digest));
        return $"SharedAccessSignature sr={encoded}&sig={signed}&se={until}&skn={name}";
    }

    [Scenario("S548", "all goes by WebSockets as by TCP, also by way of an HTTP proxy")]
    public async Task WebSockets()
    {
        var queue = await Queue("s548");
        await Administrator.CreateQueueAsync(new CreateQueueOptions("s548s") { RequiresSession = true });
        var tunnel = Own(new Tunnel());
        foreach (var proxy in new IWebProxy?[] { null, new WebProxy($"http://127.0.0.1:{tunnel.Port}") })
        {
            var options = By(ServiceBusTransportType.AmqpWebSockets);
            if (proxy is not null)
            {
                options.WebProxy = proxy;
            }
            var client = Connect(Secured.ConnectionString, options);
            await RoundTrip(client, queue);
            await client.CreateSender("s548s").SendMessagesAsync(
                Enumerable.Range(1, 100).Select(n => InSession("x", n)));
            await using var session = await client.AcceptNextSessionAsync("s548s");
            await session.SetSessionStateAsync(new BinaryData(Pattern(100_000)));
            var messages = await Receive(session, 100);
            Check.Equal(Texts(1, 100), Bodies(messages));
            await CompleteAll(session, messages);
            Check.Equal(Pattern(100_000), (await session.GetSessionStateAsync()).ToArray());
            var handled = new TaskCompletionSource<string>(TaskCreationOptions.RunContinuationsAsynchronously);
            await using var processor = client.CreateProcessor(queue);
            processor.ProcessMessageAsync += args =>
            {
                handled.TrySetResult(args.Message.Body.ToString());
                return Task.CompletedTask;
            };
            processor.ProcessErrorAsync += _ => Task.CompletedTask;
            await processor.StartProcessingAsync();
            await client.CreateSender(queue).SendMessageAsync(Message("handled"));
            Check.Equal("handled", await handled.Task.WaitAsync(Deadline));
            await processor.CloseAsync();
        }
        Check.True(tunnel.Connections > 0, "nothing went by the proxy");
    }

    [Scenario("S549", "WebSockets that are cut are opened again by the same objects")]
    public async Task WebSocketsCut()
    {
        var queue = await Queue("s549");
        // By the HTTP proxy: the client goes to port 443 and no other.
        var tunnel = Own(new Tunnel());
        var options = By(ServiceBusTransportType.AmqpWebSockets);
        options.WebProxy = new WebProxy($"http://127.0.0.1:{tunnel.Port}");
        options.RetryOptions.MaxRetries = 3;
        var client = Connect(Secured.ConnectionString, options);
        var (sender, receiver) = (client.CreateSender(queue), client.CreateReceiver(queue));
        for (var n = 1; n <= 3; n++)
        {
            await sender.SendMessageAsync(Message(n));
            Check.Equal($"{n}", (await ReceiveOne(receiver)).Body.ToString());
            Check.True(tunnel.Cut() > 0, "no connection");
        }
        Check.True(tunnel.Connections >= 3, $"{tunnel.Connections} connections");
    }

    /// <summary>An identity with a role. The issuer makes its token once.</summary>
    sealed class Identity(string role, object? claims = null, bool forged = false, TimeSpan? life = null)
        : TokenCredential
    {
        readonly Lazy<Task<AccessToken>> token =
            new(() => Make(role, claims, forged, Now + (life ?? TimeSpan.FromHours(1))));
        int asked;

        public int Asked => asked;

        static async Task<AccessToken> Make(string role, object? claims, bool forged, DateTimeOffset until)
        {
            var all = new Dictionary<string, object>
            {
                ["roles"] = new[] { $"Azure Service Bus Data {role}" }, ["exp"] = until.ToUnixTimeSeconds(),
            };
            foreach (var claim in claims?.GetType().GetProperties() ?? [])
            {
                all[claim.Name] = claim.GetValue(claims)!;
            }
            string[] words = [JsonSerializer.Serialize(all), .. forged ? new[] { "--forged" } : []];
            return new AccessToken((await Broker.Control("JITNEY_TOKEN", words)).Trim(), until);
        }

        public override AccessToken GetToken(TokenRequestContext context, CancellationToken cancel) =>
            GetTokenAsync(context, cancel).AsTask().GetAwaiter().GetResult();

        public override async ValueTask<AccessToken> GetTokenAsync(
            TokenRequestContext context, CancellationToken cancel)
        {
            Check.Equal("https://servicebus.azure.net/.default", context.Scopes.Single());
            Interlocked.Increment(ref asked);
            return await token.Value;
        }
    }

    [Scenario("S550", "a token credential may do what its role says, for messages and administration")]
    public async Task Tokens()
    {
        var queue = await Queue("s550");
        var owner = Own(new ServiceBusClient(Secured.Address, new Identity("Owner"), By()));
        await RoundTrip(owner, queue);
        var administrator = new ServiceBusAdministrationClient(Secured.Address, new Identity("Owner"));
        await administrator.CreateQueueAsync("s550b");
        Check.True(await administrator.QueueExistsAsync("s550b"), "no queue");

        var sending = Own(new ServiceBusClient(Secured.Address, new Identity("Sender"), By()));
        await sending.CreateSender(queue).SendMessageAsync(Message("by a sender"));
        await Check.Throws<UnauthorizedAccessException>(
            () => sending.CreateReceiver(queue).ReceiveMessageAsync(Seconds(5)));
        var receiving = Own(new ServiceBusClient(Secured.Address, new Identity("Receiver"), By()));
        var receiver = receiving.CreateReceiver(queue);
        await receiver.CompleteMessageAsync(await ReceiveOne(receiver));
        await Check.Throws<UnauthorizedAccessException>(
            () => receiving.CreateSender(queue).SendMessageAsync(Message("no")));

        Identity[] wrong =
        [
            new("Reader"), new("Owner", forged: true), new("Owner", new { aud = "https://elsewhere.invalid" }),
            new("Owner", new { iss = "https://other.invalid/" }), new("Owner", life: TimeSpan.FromHours(-1)),
        ];
        foreach (var each in wrong)
        {
            await Refused(Own(new ServiceBusClient(Secured.Address, each, By())), queue);
        }
    }

    [Scenario("S551", "one token serves all entities of a connection, and a wrong one can be mended")]
    public async Task Renewed()
    {
        var (queue, other) = (await Queue("s551"), await Queue("s551b"));
        var identity = new Identity("Owner");
        var client = Own(new ServiceBusClient(Secured.Address, identity, By()));
        await RoundTrip(client, queue);
        await RoundTrip(client, other);
        Check.Equal(1, identity.Asked);
        // An identity that is refused, and is given its role then.
        var role = "Reader";
        var mended = Own(new ServiceBusClient(Secured.Address, new Changing(() => role), By()));
        var sender = mended.CreateSender(queue);
        await Check.Throws<UnauthorizedAccessException>(() => sender.SendMessageAsync(Message("no")));
        role = "Owner";
        await sender.SendMessageAsync(Message("with the role"));
        Check.Equal("with the role", (await ReceiveOne(mended.CreateReceiver(queue))).Body.ToString());
    }

    /// <summary>An identity whose role changes. Its tokens are so short that the client keeps none for later.</summary>
    sealed class Changing(Func<string> role) : TokenCredential
    {
        public override AccessToken GetToken(TokenRequestContext context, CancellationToken cancel) =>
            new Identity(role(), life: TimeSpan.FromMinutes(2)).GetToken(context, cancel);

        public override ValueTask<AccessToken> GetTokenAsync(TokenRequestContext context, CancellationToken cancel) =>
            new Identity(role(), life: TimeSpan.FromMinutes(2)).GetTokenAsync(context, cancel);
    }

    [Scenario("S552", "signatures and named keys are credentials that can be changed while the client is used")]
    public async Task Signatures()
    {
        var queue = await Queue("s552");
        var credential = new AzureSasCredential(
            Signature($"sb://{Secured.Address}/{queue}", Secured.Root, Secured.RootKey, Seconds(3600)));
        await RoundTrip(Own(new ServiceBusClient(Secured.Address, credential, By())), queue);
        var listening = new AzureSasCredential(
            Signature($"sb://{Secured.Address}/", "listener", Secured.ListenerKey, Seconds(3600)));
        var client = Own(new ServiceBusClient(Secured.Address, listening, By()));
        Check.True(await client.CreateReceiver(queue).PeekMessageAsync() is null, "a message is there");
        await Check.Throws<UnauthorizedAccessException>(
            () => client.CreateSender(queue).SendMessageAsync(Message("no")));
        listening.Update(Signature($"sb://{Secured.Address}/", "speaker", Secured.SpeakerKey, Seconds(3600)));
        await client.CreateSender(queue).SendMessageAsync(Message("by the new signature"));
        foreach (var wrong in new[]
        {
            Signature($"sb://{Secured.Address}/", Secured.Root, "wrong", Seconds(3600)),
            Signature($"sb://{Secured.Address}/", Secured.Root, Secured.RootKey, Seconds(-3600)),
            Signature($"sb://{Secured.Address}/another", Secured.Root, Secured.RootKey, Seconds(3600)),
        })
        {
            await Refused(Own(new ServiceBusClient(Secured.Address, new AzureSasCredential(wrong), By())), queue);
        }
        // In a connection string.
        var bearing = $"Endpoint=sb://{Secured.Address}/;SharedAccessSignature="
            + Signature($"sb://{Secured.Address}/{queue}", Secured.Root, Secured.RootKey, Seconds(3600));
        Check.Equal("by the new signature",
            (await ReceiveOne(Connect(bearing, By()).CreateReceiver(queue, Destructive))).Body.ToString());

        var named = new AzureNamedKeyCredential(Secured.Root, "wrong");
        var keyed = Own(new ServiceBusClient(Secured.Address, named, By()));
        await Refused(keyed, queue);
        named.Update(Secured.Root, Secured.RootKey);
        await RoundTrip(keyed, queue);
    }

    [Scenario("S553", "the key of a queue works with EntityPath in the connection string, and not without")]
    public async Task EntityPath()
    {
        var rule = new SharedAccessAuthorizationRule("own", [AccessRights.Send, AccessRights.Listen]);
        var (queue, other) = (await Queue("s553", rule), await Queue("s553b"));
        var key = $"{Secured.With("own", rule.PrimaryKey)};EntityPath={queue}";
        var client = Connect(key, By());
        await RoundTrip(client, queue);
        Check.Equal(queue, ServiceBusConnectionStringProperties.Parse(key).EntityPath);
        // The client refuses another entity by itself.
        await Check.Throws<ArgumentException>(
            async () => await client.CreateSender(other).SendMessageAsync(Message("no")));
        await Refused(Connect(Secured.With("own", rule.PrimaryKey), By()), queue);
        // A key of the namespace with EntityPath.
        await RoundTrip(Connect($"{Secured.ConnectionString};EntityPath={other}", By()), other);
    }

    [Scenario("S554", "a custom endpoint address leads to the broker by the name of a namespace")]
    public async Task CustomEndpoint()
    {
        var queue = await Queue("s554");
        var name = Secured.With(Secured.Root, Secured.RootKey, "secured.servicebus.windows.net");
        foreach (var transport in new[] { ServiceBusTransportType.AmqpTcp, ServiceBusTransportType.AmqpWebSockets })
        {
            var options = By(transport);
            options.CustomEndpointAddress = new Uri($"sb://{Secured.Address}");
            var client = Connect(name, options);
            Check.Equal("secured.servicebus.windows.net", client.FullyQualifiedNamespace);
            await RoundTrip(client, queue);
        }
        // A port that is no usual one, with TLS: the broker's other ports have it, too.
        var other = By();
        other.CustomEndpointAddress = new Uri($"amqps://localhost:{Secured.AmqpPort}");
        await RoundTrip(Connect(name, other), queue);
        var nowhere = By();
        nowhere.CustomEndpointAddress = new Uri($"sb://{Secured.Address}");
        var wrong = Connect(Secured.With(Secured.Root, "wrong", "secured.servicebus.windows.net"), nowhere);
        await Refused(wrong, queue);
    }

    [Scenario("S555", "the certificate validation callback decides about the broker's certificate")]
    public async Task Certificate()
    {
        var queue = await Queue("s555");
        var asked = new ConcurrentQueue<(string Issuer, SslPolicyErrors Errors)>();
        var accepts = false;
        // By TCP: the SDK does not ask it for WebSockets.
        ServiceBusClientOptions Asking()
        {
            var options = By();
            options.CertificateValidationCallback = (_, certificate, _, errors) =>
            {
                asked.Enqueue((certificate!.Issuer, errors));
                return accepts;
            };
            return options;
        }

        await Check.Throws<Exception>(() =>
            Connect(Secured.ConnectionString, Asking()).CreateSender(queue).SendMessageAsync(Message("no")));
        Check.True(!asked.IsEmpty, "it was not asked");
        accepts = true;
        await RoundTrip(Connect(Secured.ConnectionString, Asking()), queue);
        // The broker's authority is known here, and the name is the certificate's.
        Check.True(asked.All(each => each.Errors == SslPolicyErrors.None), string.Join(", ", asked));
        asked.Clear();
        var renamed = Asking();
        renamed.CustomEndpointAddress = new Uri($"sb://{Secured.Address}");
        await RoundTrip(Connect(Secured.With(Secured.Root, Secured.RootKey, "no-name-of-its.example"), renamed), queue);
        Check.True(!asked.IsEmpty, "it was not asked");
    }

    /// <summary>A proxy of HTTP that opens tunnels (CONNECT) to whatever it is asked for.</summary>
    sealed class Tunnel : IAsyncDisposable
    {
        readonly TcpListener listener = new(IPAddress.Loopback, 0);
        readonly List<Socket> sockets = [];
        readonly Task accepting;

        public Tunnel()
        {
            listener.Start();
            accepting = Task.Run(Accept);
        }

        public int Port => ((IPEndPoint)listener.LocalEndpoint).Port;
        public int Connections { get; private set; }

        /// <summary>Resets all tunnels; returns how many.</summary>
        public int Cut()
        {
            lock (sockets)
            {
                var count = sockets.Count;
                foreach (var socket in sockets)
                {
                    socket.LingerState = new LingerOption(true, 0);
                    socket.Close();
                }
                sockets.Clear();
                return count;
            }
        }

        async Task Accept()
        {
            try
            {
                while (true)
                {
                    var client = await listener.AcceptSocketAsync();
                    _ = Task.Run(() => Open(client));
                }
            }
            catch (Exception failure) when (failure is SocketException or ObjectDisposedException)
            {
                // The end of the proxy.
            }
        }

        async Task Open(Socket client)
        {
            try
            {
                var head = "";
                var one = new byte[1];
                while (!head.EndsWith("\r\n\r\n") && await client.ReceiveAsync(one) > 0)
                {
                    head += (char)one[0];
                }
                var words = head.Split(' ');
                Check.Equal("CONNECT", words[0]);
                var place = words[1].Split(':');
                var broker = new Socket(SocketType.Stream, ProtocolType.Tcp);
                await broker.ConnectAsync(IPAddress.Parse(place[0]), int.Parse(place[1]));
                await client.SendAsync("HTTP/1.1 200 Connection established\r\n\r\n"u8.ToArray());
                lock (sockets)
                {
                    Connections++;
                    sockets.Add(client);
                }
                await Task.WhenAny(Copy(client, broker), Copy(broker, client));
                broker.Close();
                client.Close();
            }
            catch (Exception failure) when (failure is SocketException or ObjectDisposedException)
            {
                // Reset, by Cut or by one of the ends.
            }
            finally
            {
                lock (sockets)
                {
                    sockets.Remove(client);
                }
            }
        }

        static async Task Copy(Socket from, Socket to)
        {
            var buffer = new byte[65_536];
            int length;
            while ((length = await from.ReceiveAsync(buffer)) > 0)
            {
                for (var sent = 0; sent < length;)
                {
                    sent += await to.SendAsync(buffer.AsMemory(sent, length - sent));
                }
            }
        }

        public async ValueTask DisposeAsync()
        {
            listener.Stop();
            Cut();
            await accepting;
        }
    }
}

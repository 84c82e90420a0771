using System.Security.Cryptography;
using System.Text;
using Azure;

namespace Interop;

class Keys : SecuredScenarios
{
    /// <summary>A shared access signature, as anybody can make one.</summary>
    static string Signed(string resource, string name, string key, TimeSpan validity)
    {
        var escaped = Uri.EscapeDataString(resource);
        var end = (Now + validity).ToUnixTimeSeconds();
        var hash = HMACSHA256.HashData(Encoding.UTF8.GetBytes(key), Encoding.UTF8.GetBytes($"{escaped}\n{end}"));
        var signature = Uri.EscapeDataString(Convert.ToBase64String(hash));
        return $"SharedAccessSignature sr={escaped}&sig={signature}&se={end}&skn={Uri.EscapeDataString(name)}";
    }

    static readonly string Whole = $"sb://{Secured.Address}/";
    static readonly TimeSpan Hour = TimeSpan.FromHours(1);

    /// <summary>A connection with a signature in place of a key.</summary>
    ServiceBusClient Bearing(string signature) =>
        Connect($"Endpoint={Whole};SharedAccessSignature={signature}", Once());

    static SharedAccessAuthorizationRule Rule(string name, params AccessRights[] rights) => new(name, rights);

    [Scenario("S264", "a wrong key and an unknown name are unauthorized")]
    public async Task AWrongKeyAndAnUnknownNameAreUnauthorized()
    {
        await Administrator.CreateQueueAsync("s264");
        await DeniesAll(WithKey(Secured.Root, "wrong"), "s264");
        await DeniesAll(WithKey("no-such-name", Secured.RootKey), "s264");
        await DeniesAll(Connect(Secured.With(Secured.Root, "wrong"), OverWebSockets()), "s264");
        await RoundTrip(WithRoot(), "s264");
        var speaker = WithKey("speaker", Secured.SpeakerKey);
        var listener = WithKey("listener", Secured.ListenerKey);
        await speaker.CreateSender("s264").SendMessageAsync(Message(1));
        await DeniesReceiving(speaker.CreateReceiver("s264"));
        Check.Equal(["1"], Bodies(await Receive(listener.CreateReceiver("s264"), 1)));
        await DeniesSending(listener, "s264");
        // A key that is given apart from the connection string.
        var credential = new AzureNamedKeyCredential(Secured.Root, Secured.RootKey);
        var client = Own(new ServiceBusClient(Secured.Address, credential, Options()));
        Check.Equal("1", (await client.CreateReceiver("s264").PeekMessageAsync()).Body.ToString());
    }

    [Scenario("S265", "a signature is good for its resource and its time")]
    public async Task ASignatureIsGoodForItsResourceAndItsTime()
    {
        await Administrator.CreateQueueAsync("s265");
        await Administrator.CreateQueueAsync("s265b");
        foreach (var resource in new[] { Whole, $"amqps://{Secured.Address}", $"https://{Secured.Address}/",
            Secured.Address })
        {
            await RoundTrip(Bearing(Signed(resource, Secured.Root, Secured.RootKey, Hour)), "s265");
        }
        var credential = new AzureSasCredential(Signed(Whole, Secured.Root, Secured.RootKey, Hour));
        await RoundTrip(Own(new ServiceBusClient(Secured.Address, credential, Options())), "s265");
        var own = Bearing(Signed($"{Whole}s265", Secured.Root, Secured.RootKey, Hour));
        await RoundTrip(own, "s265");
        await DeniesAll(own, "s265b");
        foreach (var signature in new[]
        {
            Signed(Whole, Secured.Root, Secured.RootKey, -Hour),
            Signed(Whole, Secured.Root, "wrong", Hour),
            Signed(Whole, Secured.Root, Secured.RootKey, Hour).Replace("&se=", "&se=1"),
            $"SharedAccessSignature sr=nonsense&sig=nonsense&se={(Now + Hour).ToUnixTimeSeconds()}&skn=nonsense",
        })
        {
            await DeniesAll(Bearing(signature), "s265");
        }
    }

    [Scenario("S265", "a link ends with its signature")]
    public async Task ALinkEndsWithItsSignature()
    {
        await Administrator.CreateQueueAsync("s265c");
        var client = Bearing(Signed($"{Whole}s265c", Secured.Root, Secured.RootKey, Seconds(6)));
        var sender = client.CreateSender("s265c");
        var receiver = client.CreateReceiver("s265c");
        await sender.SendMessageAsync(Message(1));
        await receiver.CompleteMessageAsync(await ReceiveOne(receiver));
        await ReceivingFails<UnauthorizedAccessException>(receiver);
        await Check.Throws<UnauthorizedAccessException>(() => sender.SendMessageAsync(Message(2)));
        await DeniesSending(client, "s265c");
        Check.Equal([], Bodies(await PeekAll(WithRoot().CreateReceiver("s265c"))));
    }

    [Scenario("S266", "a key allows what its rule says, on its entity")]
    public async Task AKeyAllowsWhatItsRuleSaysOnItsEntity()
    {
        var listener = Rule("listener", AccessRights.Listen);
        var speaker = Rule("speaker", AccessRights.Send);
        var manager = Rule("manager", AccessRights.Manage, AccessRights.Send, AccessRights.Listen);
        await Administrator.CreateQueueAsync(
            new CreateQueueOptions("s266") { AuthorizationRules = { listener, speaker, manager } });
        await Administrator.CreateQueueAsync("s266b");

        // The SDK signs for the namespace, unless the connection string has a path.
        foreach (var key in new[] { speaker.PrimaryKey, speaker.SecondaryKey })
        {
            var speaking = WithKey("speaker", key, "s266");
            var sender = speaking.CreateSender("s266");
            await sender.SendMessagesAsync(Numbered(3));
            await sender.CancelScheduledMessageAsync(await sender.ScheduleMessageAsync(Message(4), In(Hour)));
            await DeniesReceiving(speaking.CreateReceiver("s266"));
        }
        foreach (var key in new[] { listener.PrimaryKey, listener.SecondaryKey })
        {
            var listening = WithKey("listener", key, "s266");
            var receiver = listening.CreateReceiver("s266");
            var messages = await Receive(receiver, 3);
            Check.Equal(Texts(1, 3), Bodies(messages));
            await receiver.CompleteMessageAsync(messages[0]);
            await receiver.DeferMessageAsync(messages[1]);
            await receiver.DeadLetterMessageAsync(messages[2]);
            await receiver.CompleteMessageAsync(await receiver.ReceiveDeferredMessageAsync(messages[1].SequenceNumber));
            var dead = listening.CreateReceiver("s266", DeadLetters);
            await dead.CompleteMessageAsync(await ReceiveOne(dead));
            await DeniesSending(listening, "s266");
        }
        await RoundTrip(WithKey("manager", manager.PrimaryKey, "s266"), "s266");
        await Check.Throws<UnauthorizedAccessException>(() =>
            WithKey("manager", manager.PrimaryKey).CreateSender("s266b").SendMessageAsync(Message(1)));
        await DeniesAll(WithKey("manager", manager.PrimaryKey, "s266b"), "s266b");
        await DeniesAll(WithKey("speaker", speaker.PrimaryKey, "s266b"), "s266b");
        await DeniesAll(WithKey("speaker", listener.PrimaryKey, "s266"), "s266");
    }

    [Scenario("S267", "keys of a topic are good for its subscriptions")]
    public async Task KeysOfATopicAreGoodForItsSubscriptions()
    {
        var listener = Rule("listener", AccessRights.Listen);
        var speaker = Rule("speaker", AccessRights.Send);
        await Administrator.CreateTopicAsync(
            new CreateTopicOptions("s267") { AuthorizationRules = { listener, speaker } });
        await Administrator.CreateSubscriptionAsync("s267", "a");
        var speaking = WithKey("speaker", speaker.PrimaryKey, "s267");
        await speaking.CreateSender("s267").SendMessageAsync(Message(1));
        await DeniesReceiving(speaking.CreateReceiver("s267", "a"));
        var listening = WithKey("listener", listener.PrimaryKey, "s267");
        Check.Equal(["1"], Bodies(await Receive(listening.CreateReceiver("s267", "a"), 1)));
        await DeniesSending(listening, "s267");
    }

    [Scenario("S268", "a key that was replaced opens nothing more")]
    public async Task AKeyThatWasReplacedOpensNothingMore()
    {
        var rule = Rule("speaker", AccessRights.Send);
        var (first, second) = (rule.PrimaryKey, rule.SecondaryKey);
        QueueProperties made = await Administrator.CreateQueueAsync(
            new CreateQueueOptions("s268") { AuthorizationRules = { rule } });
        ServiceBusSender Speaker(string key) => WithKey("speaker", key, "s268").CreateSender("s268");
        await Speaker(first).SendMessageAsync(Message(1));

        var third = Convert.ToBase64String(RandomNumberGenerator.GetBytes(32));
        made.AuthorizationRules.Clear();
        made.AuthorizationRules.Add(new SharedAccessAuthorizationRule("speaker", second, third, [AccessRights.Send]));
        await Administrator.UpdateQueueAsync(made);
        await Check.Throws<UnauthorizedAccessException>(() => Speaker(first).SendMessageAsync(Message("denied")));
        await Speaker(second).SendMessageAsync(Message(2));
        await Speaker(third).SendMessageAsync(Message(3));
        Check.Equal(Texts(1, 3), Bodies(await Receive(WithRoot().CreateReceiver("s268"), 3)));
    }

    [Scenario("S269", "the emulator's connection string is verified too")]
    public async Task TheEmulatorsConnectionStringIsVerifiedToo()
    {
        await Administrator.CreateQueueAsync("s269");
        ServiceBusClient At(int port, string key) =>
            Connect(Secured.With(Secured.Root, key, $"localhost:{port}") + ";UseDevelopmentEmulator=true", Once());
        await RoundTrip(At(Secured.AmqpPort, Secured.RootKey), "s269");
        await DeniesAll(At(Secured.AmqpPort, "SAS_KEY_VALUE"), "s269");
        // Where no key is verified any key is good.
        await At(Broker.AmqpPort, "any key").CreateReceiver("s261r").PeekMessageAsync();
    }

    [Scenario("S287", "administration needs the right to manage")]
    public async Task AdministrationNeedsTheRightToManage()
    {
        var speaker = Rule("speaker", AccessRights.Send, AccessRights.Listen);
        await Administrator.CreateQueueAsync(new CreateQueueOptions("s287") { AuthorizationRules = { speaker } });
        ServiceBusAdministrationClient Keyed(string name, string key) => new(Secured.With(name, key));
        ServiceBusAdministrationClient Signing(TimeSpan validity) => new(Secured.Address,
            new AzureSasCredential(Signed($"https://{Secured.Address}", Secured.Root, Secured.RootKey, validity)),
            new());
        // A key that lacks the right is told which claims reading needs.
        foreach (var (who, told) in new[]
        {
            (Keyed(Secured.Root, "wrong"), "SubCode=401"), (Keyed("no-such-name", Secured.RootKey), "SubCode=401"),
            (Keyed("speaker", speaker.PrimaryKey), "SubCode=401"),
            (Keyed("listener", Secured.ListenerKey), "Manage,EntityRead claims required"),
            (Signing(-Hour), "SubCode=401"),
        })
        {
            await Denies(401, "SubCode=401", () => who.CreateQueueAsync("s287b"));
            await Denies(401, "SubCode=401", () => who.DeleteQueueAsync("s287"));
            await Denies(401, told, () => who.GetQueueAsync("s287"));
            await Denies(401, told, () => All(who.GetQueuesAsync()));
        }
        Check.Equal("s287", (await Administrator.GetQueueAsync("s287")).Value.Name);
        Check.True(!await Administrator.QueueExistsAsync("s287b"), "s287b was made");
        Check.Equal("s287", (await Signing(Hour).GetQueueAsync("s287")).Value.Name);
    }
}

using System.Text.Json;
using Azure.Core;

namespace Interop;

/// <summary>Token credentials, with tokens of the issuer that the secured broker trusts (identity.py).</summary>
class Identities : SecuredScenarios
{
    /// <summary>A credential that always has the same token.</summary>
    sealed class Bearer(string token) : TokenCredential
    {
        public override AccessToken GetToken(TokenRequestContext context, CancellationToken cancellation) =>
            new(token, DateTimeOffset.UtcNow.AddHours(1));

        public override ValueTask<AccessToken> GetTokenAsync(TokenRequestContext context,
            CancellationToken cancellation) =>
            new(GetToken(context, cancellation));
    }

    /// <summary>A credential with a role, and with a claim that is not as it should be.</summary>
    static async Task<TokenCredential> Identity(string role, string? claim = null, object? value = null,
        params string[] options)
    {
        var claims = new Dictionary<string, object> { ["roles"] = new[] { $"Azure Service Bus Data {role}" } };
        if (claim != null)
        {
            claims[claim] = value!;
        }
        return new Bearer(
            (await Broker.Control("JITNEY_TOKEN", [JsonSerializer.Serialize(claims), .. options])).Trim());
    }

    ServiceBusClient Connect(TokenCredential who, ServiceBusClientOptions? options = null) =>
        Own(new ServiceBusClient(Secured.Address, who, options ?? Once()));

    static ServiceBusAdministrationClient Administering(TokenCredential who) => new(Secured.Address, who);

    [Scenario("S270", "an identity does what its roles say")]
    public async Task AnIdentityDoesWhatItsRolesSay()
    {
        var owner = await Identity("Owner");
        await Administering(owner).CreateQueueAsync("s270");
        Check.Equal(10, (await Administering(owner).GetQueueAsync("s270")).Value.MaxDeliveryCount);
        await RoundTrip(Connect(owner), "s270");
        await RoundTrip(Connect(owner, OverWebSockets()), "s270");

        var sending = await Identity("Sender");
        var (sends, receives) = (Connect(sending), Connect(await Identity("Receiver")));
        await sends.CreateSender("s270").SendMessageAsync(Message(1));
        Check.Equal("1", (await ReceiveOne(receives.CreateReceiver("s270"))).Body.ToString());
        await DeniesReceiving(sends.CreateReceiver("s270"));
        await DeniesSending(receives, "s270");

        var now = Now.ToUnixTimeSeconds();
        foreach (var (claim, value) in new (string, object)[]
        {
            ("aud", "https://vault.azure.net"), ("iss", "https://other.invalid"), ("exp", now - 3600),
            ("nbf", now + 3600),
            ("roles", Array.Empty<string>()),
        })
        {
            await DeniesAll(Connect(await Identity("Owner", claim, value)), "s270");
        }
        var forged = await Identity("Owner", options: "--forged");
        await DeniesAll(Connect(forged), "s270");
        foreach (var who in new[] { forged, sending })
        {
            await Denies(401, "SubCode=401", () => Administering(who).CreateQueueAsync("s270b"));
        }
        Check.True(!await Administering(owner).QueueExistsAsync("s270b"), "s270b was made");
    }
}

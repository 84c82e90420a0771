using System.Diagnostics;
using Azure.Core;
using Env = System.Environment;

namespace Interop;

/// <summary>The suite's broker, which takes any key, and how it is reached.</summary>
static class Broker
{
    public static readonly string ConnectionString = Variable("JITNEY_CONNECTION_STRING");
    public static readonly int AmqpPort = int.Parse(Variable("JITNEY_AMQP_PORT"));
    public static readonly int HttpPort = int.Parse(Variable("JITNEY_HTTP_PORT"));
    public static readonly string Work = Variable("JITNEY_WORK");

    /// <summary>Every port takes every protocol, so one connection string serves messages and administration.</summary>
    public static ServiceBusAdministrationClient Administration { get; } = new(ConnectionString);

    public static Task Kill() => Control("JITNEY_BROKER_CONTROL", "kill");
    public static Task Stop() => Control("JITNEY_BROKER_CONTROL", "stop");
    public static Task Start() => Control("JITNEY_BROKER_CONTROL", "start");

    public static string Variable(string name) =>
        Env.GetEnvironmentVariable(name) ?? throw new InvalidOperationException(
            $"{name} is not set: use interop-tests/run");

    /// <summary>Runs a command of the environment with words added; returns what it printed.</summary>
    public static async Task<string> Control(string variable, params string[] added)
    {
        var words = Variable(variable).Split(' ');
        var start = new ProcessStartInfo(words[0], [.. words[1..], .. added]) { RedirectStandardOutput = true };
        using var process = Process.Start(start)!;
        var output = await process.StandardOutput.ReadToEndAsync();
        await process.WaitForExitAsync();
        return process.ExitCode == 0 ? output
            : throw new InvalidOperationException(
                $"{variable} {string.Join(' ', added)}: exit code {process.ExitCode}");
    }
}

/// <summary>
/// The broker that verifies keys, tokens and certificates, and to SDKs looks like the service (secured.py).
/// </summary>
static class Secured
{
    public const string Root = "RootManageSharedAccessKey";
    public const string RootKey = "cm9vdCBrZXkgb2YgdGhlIGd1YXJkZWQgYnJva2VyIQ==";
    public const string ListenerKey = "bGlzdGVuZXIga2V5IG9mIHRoZSBndWFyZGVkIG9uZSE=";
    public const string SpeakerKey = "c3BlYWtlciBrZXkgb2YgdGhlIGd1YXJkZWQgb25lISE=";

    public static readonly string Address = Broker.Variable("JITNEY_SECURED_ADDRESS");
    public static readonly int AmqpPort = int.Parse(Broker.Variable("JITNEY_SECURED_AMQP_PORT"));
    public static readonly int HttpPort = int.Parse(Broker.Variable("JITNEY_SECURED_HTTP_PORT"));
    public static readonly string Certificates = Broker.Variable("JITNEY_SECURED_CERTIFICATES");

    public static readonly string ConnectionString = With(Root, RootKey);

    public static ServiceBusAdministrationClient Administration { get; } = new(ConnectionString);

    /// <summary>A connection string as the service's portal shows it, but for the host.</summary>
    public static string With(string name, string key, string? host = null) =>
        $"Endpoint=sb://{host ?? Address}/;SharedAccessKeyName={name};SharedAccessKey={key}";

    public static Task Kill() => Broker.Control("JITNEY_SECURED_CONTROL", "kill");
    public static Task Start() => Broker.Control("JITNEY_SECURED_CONTROL", "start");

    /// <summary>A token of the issuer that the broker trusts, with claims in JSON.</summary>
    public static async Task<string> Token(string claims) => (await Broker.Control("JITNEY_TOKEN", claims)).Trim();
}

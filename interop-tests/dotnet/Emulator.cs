using System.Diagnostics;

namespace Interop;

/// <summary>The broker in the emulator's place, and the emulator's flag with keys that are verified.</summary>
class Emulator : Scenarios
{
    [Scenario("", "in the emulator's place the broker serves every connection string of the SDK")]
    public async Task EveryConnectionStringWorks()
    {
        var python = Broker.Variable("JITNEY_BROKER_CONTROL").Split(' ')[0];
        var runner = System.Environment.GetEnvironmentVariable("CSRUN");
        string[] program = string.IsNullOrEmpty(runner)
            ? ["dotnet", "run", "--project", "children/place.csproj"] : [runner, "children/place.csproj", "Place.cs"];
        // Without the .NET SDK's downloads there is nothing to fetch in the namespace, which has no network but loopback.
        if (string.IsNullOrEmpty(runner))
        {
            using var building = Process.Start("dotnet", ["build", "--nologo", "--verbosity", "quiet", "children/place.csproj"]);
            await building.WaitForExitAsync();
            program = [.. program[..2], "--no-build", .. program[2..]];
        }
        var start = new ProcessStartInfo("unshare", ["--net", python, "place.py", Path.Combine(Broker.Work, "place"), .. program])
        {
            RedirectStandardOutput = true,
        };
        using var process = Process.Start(start)!;
        var output = await process.StandardOutput.ReadToEndAsync();
        await process.WaitForExitAsync();
        Check.True(process.ExitCode == 0, $"exit code {process.ExitCode}\n{output}");
        Check.Equal(36, output.Split('\n').Count(line => line.StartsWith("ok ")));
    }

    [Scenario("", "the emulator's flag means no TLS, and keys are verified all the same")]
    public async Task TheFlagMeansNoTlsAndKeysAreVerified()
    {
        static string At(int port, string key) =>
            $"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName={Secured.Root};SharedAccessKey={key};UseDevelopmentEmulator=true;";
        await CreateAtSecured("emulator-flag");
        foreach (var port in new[] { Secured.AmqpPort, Secured.HttpPort })
        {
            await RoundTrip(Connect(At(port, Secured.RootKey)), "emulator-flag");
            Check.Equal(true, (await new ServiceBusAdministrationClient(At(port, Secured.RootKey)).QueueExistsAsync("emulator-flag")).Value);
            await Check.Throws<UnauthorizedAccessException>(() =>
                Connect(At(port, Secured.ListenerKey)).CreateSender("emulator-flag").SendMessageAsync(Message(1)));
            await Check.Throws<UnauthorizedAccessException>(() =>
                new ServiceBusAdministrationClient(At(port, Secured.ListenerKey)).QueueExistsAsync("emulator-flag"));
        }
    }

    static async Task CreateAtSecured(string queue) => await Secured.Administration.CreateQueueAsync(queue);
}

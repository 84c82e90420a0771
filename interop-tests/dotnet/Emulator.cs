using System.Diagnostics;

namespace Interop;

/// <summary>The broker in the emulator's place.</summary>
class Emulator : Scenarios
{
    [Scenario("S560", "in the emulator's place the broker serves every connection string of the SDK")]
    public async Task EveryConnectionStringWorks()
    {
        var python = Broker.Variable("JITNEY_BROKER_CONTROL").Split(' ')[0];
        var runner = System.Environment.GetEnvironmentVariable("CSRUN");
        string[] program = string.IsNullOrEmpty(runner)
            ? ["dotnet", "run", "--project", "children/place.csproj"] : [runner, "children/place.csproj", "Place.cs"];
        // The namespace has no network but loopback: packages are fetched before.
        if (string.IsNullOrEmpty(runner))
        {
            using var building = Process.Start("dotnet", ["build", "--nologo", "--verbosity", "quiet",
                "children/place.csproj"]);
            await building.WaitForExitAsync();
            program = [.. program[..2], "--no-build", .. program[2..]];
        }
        var start = new ProcessStartInfo("unshare", ["--net", python, "place.py", Path.Combine(Broker.Work, "place"),
            .. program])
        {
            RedirectStandardOutput = true,
        };
        using var process = Process.Start(start)!;
        var output = await process.StandardOutput.ReadToEndAsync();
        await process.WaitForExitAsync();
        Check.True(process.ExitCode == 0, $"exit code {process.ExitCode}\n{output}");
        Check.Equal(36, output.Split('\n').Count(line => line.StartsWith("ok ")));
    }
}

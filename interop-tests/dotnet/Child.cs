using System.Diagnostics;

namespace Interop;

/// <summary>A program of Children.cs in a process of its own.</summary>
sealed class Child : IAsyncDisposable
{
    const string Project = "children/children.csproj";

    /// <summary>Where the .NET SDK runs the suite it builds them once.</summary>
    static readonly Lazy<Task> built = new(async () =>
    {
        using var building = Process.Start(
            new ProcessStartInfo("dotnet", ["build", "--nologo", "--verbosity", "quiet", Project]))!;
        await building.WaitForExitAsync();
    });

    readonly Process process;

    Child(Process process) => this.process = process;

    /// <summary>Starts a program, and returns when it is there.</summary>
    public static async Task<Child> Start(params string[] words)
    {
        var runner = System.Environment.GetEnvironmentVariable("CSRUN");
        if (string.IsNullOrEmpty(runner))
        {
            await built.Value;
        }
        var start = string.IsNullOrEmpty(runner)
            ? new ProcessStartInfo("dotnet", ["run", "--no-build", "--project", Project, "--", .. words])
            : new ProcessStartInfo(runner, [Project, "Children.cs", "--", .. words]);
        (start.RedirectStandardInput, start.RedirectStandardOutput) = (true, true);
        var child = new Child(Process.Start(start)!);
        // It is compiled first, beside scenarios that are at work.
        Check.Equal("ready", await child.Line(3 * Scenarios.Deadline));
        return child;
    }

    /// <summary>The next line that it prints, or nothing at its end.</summary>
    public async Task<string> Line(TimeSpan? deadline = null) =>
        await process.StandardOutput.ReadLineAsync().WaitAsync(deadline ?? Scenarios.Deadline) ?? "";

    public async Task Tell(string line)
    {
        await process.StandardInput.WriteLineAsync(line);
        await process.StandardInput.FlushAsync();
    }

    /// <summary>Ends it with SIGKILL.</summary>
    public async Task Kill()
    {
        process.Kill(entireProcessTree: true);
        await process.WaitForExitAsync();
    }

    /// <summary>Ends its input, and waits for its end; returns its exit code.</summary>
    public async Task<int> End()
    {
        process.StandardInput.Close();
        await process.WaitForExitAsync().WaitAsync(Scenarios.Deadline);
        return process.ExitCode;
    }

    public async ValueTask DisposeAsync()
    {
        if (!process.HasExited)
        {
            await Kill();
        }
        process.Dispose();
    }
}

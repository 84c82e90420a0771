using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Text.RegularExpressions;
using Env = System.Environment;

namespace Interop;

/// <summary>The programs of docs/clients/dotnet.md, each compiled and run as it is.</summary>
class Pages : Scenarios
{
    /// <summary>A block of the page: what follows the fence, and the text.</summary>
    sealed record Block(string Kind, string Text);

    static List<Block> Read([CallerFilePath] string source = "")
    {
        // By this source's place where the compiler tells it, else by the directory in which the suite is started.
        var here = Path.GetDirectoryName(Path.GetFullPath(source))!;
        var page = new[] { here, Env.CurrentDirectory }.Select(
            each => Path.Combine(each, "../../docs/clients/dotnet.md")).First(File.Exists);
        return [.. Regex.Matches(File.ReadAllText(page), "^```([^\n]*)\n(.*?)^```$",
            RegexOptions.Multiline | RegexOptions.Singleline)
            .Select(found => new Block(found.Groups[1].Value, found.Groups[2].Value))];
    }

    /// <summary>Compiles and runs a program in a directory of its own; returns what it printed.</summary>
    static async Task<string> Run(string directory, string project, string program, string connection,
        string? authorities)
    {
        Directory.CreateDirectory(directory);
        await File.WriteAllTextAsync(Path.Combine(directory, "page.csproj"), project);
        await File.WriteAllTextAsync(Path.Combine(directory, "Program.cs"), program);
        File.Copy(Path.Combine(Secured.Certificates, "ca.pem"), Path.Combine(directory, "ca.pem"), true);
        string[] words = Env.GetEnvironmentVariable("CSRUN") is { Length: > 0 } csrun
            ? [csrun, "page.csproj", "Program.cs"] : ["dotnet", "run", "--project", "page.csproj"];
        var start = new ProcessStartInfo(words[0], words[1..])
        {
            WorkingDirectory = directory, RedirectStandardOutput = true, RedirectStandardError = true,
                RedirectStandardInput = true,
        };
        start.Environment["SERVICEBUS"] = connection;
        start.Environment["SSL_CERT_FILE"] = authorities ?? "";
        if (authorities is null)
        {
            start.Environment.Remove("SSL_CERT_FILE");
        }
        using var process = Process.Start(start)!;
        process.StandardInput.Close();
        var (output, errors) = (process.StandardOutput.ReadToEndAsync(), process.StandardError.ReadToEndAsync());
        try
        {
            await process.WaitForExitAsync().WaitAsync(TimeSpan.FromSeconds(120));
        }
        finally
        {
            if (!process.HasExited)
            {
                process.Kill(true);
            }
        }
        Check.True(process.ExitCode == 0, $"exit code {process.ExitCode}\n{await output}{await errors}");
        return await output;
    }

    [Scenario("S556", "every program of docs/clients/dotnet.md prints what the page says", Long = true, Seconds = 300)]
    public async Task Programs()
    {
        var blocks = Read();
        var project = blocks.Single(block => block.Kind == "xml").Text;
        var all = Env.GetEnvironmentVariable("SSL_CERT_FILE");
        var count = 0;
        foreach (var (block, expected) in blocks.Zip(blocks.Skip(1)))
        {
            if (!block.Kind.StartsWith("csharp"))
            {
                continue;
            }
            Check.Equal("text", expected.Kind);
            count++;
            // In the emulator's place; the first one with keys and TLS as well, and others with these alone.
            var needsTls = block.Kind == "csharp tls";
            foreach (var isSecured in needsTls ? [true] : count == 1 ? new[] { false, true } : [false])
            {
                var directory = Path.Combine(Broker.Work, "page", $"{count}{(isSecured ? "-secured" : "")}");
                var connection = isSecured ? Secured.ConnectionString : Broker.ConnectionString;
                var output = await Run(directory, project, block.Text, connection, needsTls ? null : all);
                Check.Equal(expected.Text, output.ReplaceLineEndings("\n"));
            }
        }
        Check.Equal(5, count);
    }
}

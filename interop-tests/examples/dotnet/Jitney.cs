using System.Diagnostics;
using System.Text;
using System.Text.RegularExpressions;

/// <summary>
/// One Jitney for the tests of an assembly, and a namespace of its own for each test. Copy this file and Config.json,
/// which the build copies to the output directory.
/// </summary>
/// <remarks>JITNEY_BINARY names the program; without it, <c>jitney</c> is looked for in PATH.</remarks>
public sealed class Jitney : IAsyncDisposable
{
    static readonly TimeSpan Limit = TimeSpan.FromSeconds(30);

    // Without the proxy of the environment.
    readonly HttpClient http = new(new SocketsHttpHandler { UseProxy = false }) { Timeout = Limit };
    readonly Process process;
    readonly string config;

    Jitney(Process process, string config) => (this.process, this.config) = (process, config);

    /// <summary>The connection string of the first namespace, which all tests share.</summary>
    public string ConnectionString { get; private set; } = "";

    /// <summary>The broker's address, for <c>CustomEndpointAddress</c>.</summary>
    public Uri Endpoint { get; private set; } = null!;

    /// <summary>Starts the broker. Every namespace has the entities of the file.</summary>
    public static async Task<Jitney> StartAsync(string? configFile = null)
    {
        configFile ??= Path.Combine(AppContext.BaseDirectory, "Config.json");
        var program = Environment.GetEnvironmentVariable("JITNEY_BINARY") ?? "jitney";
        // The broker stops when its input is closed, which the system does when this process ends, however it ends.
        string[] arguments = ["serve", "--ephemeral", "--config", configFile, "--amqp", "127.0.0.1:0",
            "--http", "127.0.0.1:0", "--stop-on-stdin-close"];
        var start = new ProcessStartInfo(program, arguments)
        {
            RedirectStandardInput = true, RedirectStandardError = true,
        };
        var process = new Process { StartInfo = start };
        var (log, started) = (new StringBuilder(), new TaskCompletionSource<Match>());
        // It is called until the log ends, so that the broker never waits for a reader.
        process.ErrorDataReceived += (_, line) =>
        {
            if (started.Task.IsCompleted) return;
            log.AppendLine(line.Data);
            var found = Regex.Match(line.Data ?? "", @"Endpoint=(sb://localhost:\d+);[^\s""]+");
            if (found.Success) started.TrySetResult(found);
            // The log has ended.
            else if (line.Data == null) started.TrySetException(Error($"The broker has not started:\n{log}"));
        };
        try
        {
            process.Start();
        }
        catch (System.ComponentModel.Win32Exception error)
        {
            throw Error("There is no program jitney in PATH, nor where JITNEY_BINARY says.", error);
        }
        process.BeginErrorReadLine();
        using var limit = new Timer(_ => process.Kill(), null, Limit, Timeout.InfiniteTimeSpan);
        var connect = await started.Task;
        return new Jitney(process, await File.ReadAllTextAsync(configFile))
        {
            ConnectionString = connect.Value, Endpoint = new Uri(connect.Groups[1].Value),
        };
    }

    /// <summary>Makes a namespace; it is deleted when it is disposed of.</summary>
    public async Task<JitneyNamespace> CreateNamespaceAsync()
    {
        var name = $"test-{Guid.NewGuid()}";
        await RequestAsync(HttpMethod.Put, name, new StringContent(config));
        var connectionString = ConnectionString.Replace("sb://", $"sb://{name}.");
        return new JitneyNamespace(connectionString, Endpoint, () => RequestAsync(HttpMethod.Delete, name));
    }

    public async ValueTask DisposeAsync()
    {
        process.StandardInput.Close();
        await process.WaitForExitAsync();
        process.Dispose();
        http.Dispose();
    }

    async Task RequestAsync(HttpMethod method, string name, HttpContent? body = null)
    {
        var url = new UriBuilder(Endpoint) { Scheme = "http", Path = $"/api/v1/namespaces/{name}" }.Uri;
        using var answer = await http.SendAsync(new HttpRequestMessage(method, url) { Content = body });
        var text = await answer.Content.ReadAsStringAsync();
        if (!answer.IsSuccessStatusCode) throw Error($"{method} {name}: {answer.StatusCode} {text}");
    }

    static InvalidOperationException Error(string text, Exception? cause = null) => new(text, cause);
}

/// <summary>A namespace of one test.</summary>
/// <param name="ConnectionString">Its host is NAME.localhost.</param>
/// <param name="Endpoint">
/// The broker's address, for <c>CustomEndpointAddress</c>: not every machine resolves names below localhost.
/// </param>
public sealed record JitneyNamespace(string ConnectionString, Uri Endpoint, Func<Task> DeleteAsync) : IAsyncDisposable
{
    public async ValueTask DisposeAsync() => await DeleteAsync();
}

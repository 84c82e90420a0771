using System.Diagnostics;

namespace Interop;

/// <summary>The fault proxy between a client and the suite's broker (fault_proxy.py).</summary>
sealed class FaultProxy : IAsyncDisposable
{
    readonly Process process;
    readonly string port;

    public FaultProxy()
    {
        // The runner's command begins with its Python and broker.py, which fault_proxy.py lies beside.
        var control = Broker.Variable("JITNEY_BROKER_CONTROL").Split(' ');
        var tool = Path.Combine(Path.GetDirectoryName(control[1])!, "fault_proxy.py");
        process = Process.Start(
            new ProcessStartInfo(control[0], [tool]) { RedirectStandardInput = true, RedirectStandardOutput = true })!;
        port = Answer();
    }

    /// <summary>The suite's connection string, to here.</summary>
    public string ConnectionString => Broker.ConnectionString.Replace($":{Broker.AmqpPort}", $":{port}");

    /// <summary>Force-detaches every link whose attach holds the text, and says how many there were.</summary>
    public int Detach(string text) => Tell($"detach {text}");

    /// <summary>Closes every connection with an error, and says how many there were.</summary>
    public int CloseAll() => Tell("close");

    /// <summary>Resets every connection, and says how many there were.</summary>
    public int Cut() => Tell("cut");

    /// <summary>Resets all connections, once, when clients have sent so many bytes from now on.</summary>
    public void CutAfter(long bytes) => Tell($"cut-after {bytes}");

    /// <summary>Stops traffic on all connections, which stay open.</summary>
    public void Hold() => Tell("hold");

    /// <summary>Stops what the broker sends, on all connections.</summary>
    public void HoldAnswers() => Tell("hold-answers");

    public void Release() => Tell("release");

    /// <summary>Resets new connections at once, until they are accepted.</summary>
    public void Refuse() => Tell("refuse");

    public void Accept() => Tell("accept");

    /// <summary>How many connections there have been.</summary>
    public int Connections => Tell("count");

    int Tell(string order)
    {
        lock (process)
        {
            process.StandardInput.WriteLine(order);
            process.StandardInput.Flush();
            return int.Parse(Answer());
        }
    }

    string Answer() =>
        process.StandardOutput.ReadLine() ?? throw new InvalidOperationException("fault_proxy.py has ended");

    public async ValueTask DisposeAsync()
    {
        process.StandardInput.Close();
        await process.WaitForExitAsync().WaitAsync(TimeSpan.FromSeconds(10));
        process.Dispose();
    }
}

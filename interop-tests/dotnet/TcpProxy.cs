using System.Net;
using System.Net.Sockets;

namespace Interop;

/// <summary>
/// A TCP proxy before the broker: connections can be reset, refused, or stopped while they stay open.
/// It knows nothing of AMQP, so that TLS and WebSockets pass as well.
/// </summary>
sealed class TcpProxy : IAsyncDisposable
{
    readonly TcpListener listener = new(IPAddress.Loopback, 0);
    readonly CancellationTokenSource end = new();
    readonly Lock guard = new();
    readonly List<(Socket Client, Socket Broker)> passages = [];
    readonly Task accepting;
    TaskCompletionSource open = Released();

    public TcpProxy()
    {
        listener.Start();
        accepting = Task.Run(Accept);
    }

    public int Port => ((IPEndPoint)listener.LocalEndpoint).Port;

    /// <summary>The emulator's connection string, by way of this proxy.</summary>
    public string ConnectionString => Broker.ConnectionString.Replace($":{Broker.AmqpPort}", $":{Port}");

    /// <summary>How many connections there have been.</summary>
    public int Connections { get; private set; }

    /// <summary>New connections are reset at once.</summary>
    public bool Refuses { get; set; }

    /// <summary>Resets all connections; returns how many.</summary>
    public int Cut()
    {
        lock (guard)
        {
            var count = passages.Count;
            foreach (var (client, broker) in passages)
            {
                Reset(client);
                Reset(broker);
            }
            passages.Clear();
            return count;
        }
    }

    long untilCut;

    /// <summary>Resets all connections, once, when clients have sent so many bytes from now on.</summary>
    public void CutAfter(long bytes) => Interlocked.Exchange(ref untilCut, bytes);

    /// <summary>Lets no byte pass until Release; the connections stay open.</summary>
    public void Hold() => open = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);

    public void Release() => open.TrySetResult();

    static TaskCompletionSource Released()
    {
        var done = new TaskCompletionSource();
        done.SetResult();
        return done;
    }

    static void Reset(Socket socket)
    {
        try
        {
            // With no time to linger the kernel sends a reset.
            socket.LingerState = new LingerOption(true, 0);
            socket.Close();
        }
        catch (ObjectDisposedException)
        {
            // The other direction has closed it.
        }
    }

    async Task Accept()
    {
        try
        {
            while (true)
            {
                var client = await listener.AcceptSocketAsync(end.Token);
                _ = Task.Run(() => Forward(client));
            }
        }
        catch (Exception failure) when (
            failure is OperationCanceledException or SocketException or ObjectDisposedException)
        {
            // The end of the proxy.
        }
    }

    async Task Forward(Socket client)
    {
        Connections++;
        if (Refuses)
        {
            Reset(client);
            return;
        }
        var broker = new Socket(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        client.NoDelay = true;
        try
        {
            await broker.ConnectAsync(IPAddress.Loopback, Broker.AmqpPort, end.Token);
            lock (guard)
            {
                passages.Add((client, broker));
            }
            await Task.WhenAll(Copy(client, broker, true), Copy(broker, client, false));
        }
        catch (Exception failure) when (
            failure is OperationCanceledException or SocketException or ObjectDisposedException)
        {
            // Reset, by Cut or by one of the ends.
        }
        finally
        {
            Reset(client);
            Reset(broker);
            lock (guard)
            {
                passages.Remove((client, broker));
            }
        }
    }

    async Task Copy(Socket from, Socket to, bool isClients)
    {
        var buffer = new byte[65_536];
        int length;
        while ((length = await from.ReceiveAsync(buffer, end.Token)) > 0)
        {
            await open.Task.WaitAsync(end.Token);
            for (var sent = 0; sent < length;)
            {
                sent += await to.SendAsync(buffer.AsMemory(sent, length - sent), end.Token);
            }
            var before = isClients ? Interlocked.Read(ref untilCut) : 0;
            if (before > 0 && Interlocked.Add(ref untilCut, -length) <= 0)
            {
                Cut();
            }
        }
        to.Shutdown(SocketShutdown.Send);
    }

    public async ValueTask DisposeAsync()
    {
        await end.CancelAsync();
        listener.Stop();
        Cut();
        await accepting;
    }
}

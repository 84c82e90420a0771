using System.Buffers.Binary;
using System.Net;
using System.Net.Sockets;

namespace Interop.Lite;

/// <summary>A TCP proxy for one connection, which counts the broker's frames and may reset both sides.</summary>
public sealed class Relay : IAsyncDisposable
{
    private readonly TcpListener listener = new(IPAddress.Loopback, 0);
    private readonly int brokerPort;
    private readonly Task work;
    private Socket? client;
    private Socket? broker;
    private long passed;

    private Relay(int brokerPort)
    {
        this.brokerPort = brokerPort;
        listener.Start();
        work = Task.Run(Forward);
    }

    public static Relay Start(int brokerPort) => new(brokerPort);

    public int Port => ((IPEndPoint)listener.LocalEndpoint).Port;

    /// <summary>How many of the client's bytes have passed since ResetAfter was set.</summary>
    public long Passed => Interlocked.Read(ref passed);

    /// <summary>How many of the client's bytes pass from now on, before both sides are reset.</summary>
    public long? ResetAfter { get; set { Interlocked.Exchange(ref passed, 0); field = value; } }

    /// <summary>The largest frame that the broker sent, and how many.</summary>
    public int LargestFrame { get; private set; }
    public int Frames { get; private set; }

    public void Reset()
    {
        foreach (var socket in new[] { Interlocked.Exchange(ref client, null), Interlocked.Exchange(ref broker, null) })
        {
            // With a linger time of nothing the kernel sends a reset.
            socket?.LingerState = new LingerOption(true, 0);
            socket?.Close();
        }
    }

    private async Task Forward()
    {
        try
        {
            var (one, other) = (await listener.AcceptSocketAsync(), new Socket(SocketType.Stream, ProtocolType.Tcp));
            (client, broker) = (one, other);
            await other.ConnectAsync(IPAddress.Loopback, brokerPort);
            await Task.WhenAll(FromClient(one, other), FromBroker(other, one));
        }
        catch (Exception error) when (error is SocketException or ObjectDisposedException)
        {
            // One side has closed or was reset.
        }
    }

    private async Task FromClient(Socket from, Socket to)
    {
        var buffer = new byte[16_384];
        int length;
        while ((length = await from.ReceiveAsync(buffer)) > 0)
        {
            await SendAll(to, buffer.AsMemory(0, length));
            if (Interlocked.Add(ref passed, length) >= ResetAfter)
            {
                Reset();
                return;
            }
        }
        to.Shutdown(SocketShutdown.Send);
    }

    private async Task FromBroker(Socket from, Socket to)
    {
        var buffer = new byte[16_384];
        var header = new byte[8];
        // How many bytes of the header are there, and how many of the frame are to come.
        int had = 0, rest = 0, length;
        while ((length = await from.ReceiveAsync(buffer)) > 0)
        {
            for (var at = 0; at < length;)
            {
                if (rest > 0)
                {
                    var step = Math.Min(rest, length - at);
                    (rest, at) = (rest - step, at + step);
                    continue;
                }
                header[had++] = buffer[at++];
                if (had < 8)
                {
                    continue;
                }
                had = 0;
                // A protocol header has eight bytes, and is no frame.
                if (!header.AsSpan(0, 4).SequenceEqual("AMQP"u8))
                {
                    var size = BinaryPrimitives.ReadInt32BigEndian(header);
                    (LargestFrame, Frames, rest) = (Math.Max(LargestFrame, size), Frames + 1, size - 8);
                }
            }
            await SendAll(to, buffer.AsMemory(0, length));
        }
        to.Shutdown(SocketShutdown.Send);
    }

    private static async Task SendAll(Socket to, ReadOnlyMemory<byte> bytes)
    {
        while (bytes.Length > 0)
        {
            bytes = bytes[await to.SendAsync(bytes)..];
        }
    }

    public async ValueTask DisposeAsync()
    {
        Reset();
        listener.Stop();
        await work;
    }
}

using System.Collections.Concurrent;
using System.Diagnostics;
using System.Runtime.CompilerServices;

namespace Interop;

/// <summary>The SDK's own tracing, by activities.</summary>
class Tracing : MoreScenarios
{
    static readonly AsyncLocal<bool> traced = new();

    /// <summary>The SDK reads the switch once; without a listener that wants them it makes no activities.</summary>
    [ModuleInitializer]
    internal static void Enable() => AppContext.SetSwitch("Azure.Experimental.EnableActivitySource", true);

    [Scenario("S325", "messages carry the trace they were sent in")]
    public async Task MessagesCarryTheTraceTheyWereSentIn()
    {
        var spans = new ConcurrentQueue<Activity>();
        using var listener = new ActivityListener
        {
            ShouldListenTo = source => source.Name.StartsWith("Azure.Messaging.ServiceBus") || source.Name == "interop",
            // Other scenarios run meanwhile, which are not to be traced.
            Sample = (ref ActivityCreationOptions<ActivityContext> _) =>
                traced.Value ? ActivitySamplingResult.AllDataAndRecorded : ActivitySamplingResult.None,
            ActivityStopped = spans.Enqueue,
        };
        ActivitySource.AddActivityListener(listener);
        traced.Value = true;
        using var source = new ActivitySource("interop");
        var sender = Client.CreateSender("s325");
        var receiver = Client.CreateReceiver("s325");
        string trace;
        using (var mine = source.StartActivity("mine")!)
        {
            trace = mine.TraceId.ToString();
            await sender.SendMessageAsync(Message(1));
            using var batch = await sender.CreateMessageBatchAsync();
            batch.TryAddMessage(Message(2));
            await sender.SendMessagesAsync(batch);
        }
        var messages = await Receive(receiver, 2);
        await CompleteAll(receiver, messages);
        var carried = messages.Select(each => (string)each.ApplicationProperties["traceparent"]).ToList();
        foreach (var (message, told) in messages.Zip(carried))
        {
            Check.True(told.StartsWith($"00-{trace}-"), $"{message.Body} has {told}, and not {trace}");
            Check.Equal(told, (string)message.ApplicationProperties["Diagnostic-Id"]);
        }
        // Spans for the sends are in that trace; those for receiving are linked to what the messages carry.
        var names = string.Join(", ", spans.Select(each => each.OperationName));
        Check.Equal(2,
            spans.Count(each => each.TraceId.ToString() == trace && each.OperationName == "ServiceBusSender.Send"));
        var linked = spans.Where(each => each.OperationName == "ServiceBusReceiver.Receive")
            .SelectMany(each => each.Links).Select(each => each.Context.SpanId.ToString());
        Check.Equal(Sorted(carried.Select(each => each.Split('-')[2])), Sorted(linked));
        Check.True(names.Contains("ServiceBusReceiver.Complete"), names);
    }
}

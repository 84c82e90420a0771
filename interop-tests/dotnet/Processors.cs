using System.Collections.Concurrent;

namespace Interop;

/// <summary>The SDK's processor: how many handlers, what it settles, renews and reports, and how it stops.</summary>
class Processors : Scenarios
{
    /// <summary>What a processor's error handler was told.</summary>
    sealed class Errors
    {
        readonly ConcurrentQueue<ProcessErrorEventArgs> seen = new();

        public Task Note(ProcessErrorEventArgs error)
        {
            seen.Enqueue(error);
            return Task.CompletedTask;
        }

        public IEnumerable<ProcessErrorEventArgs> From(ServiceBusErrorSource source) =>
            seen.Where(each => each.ErrorSource == source);

        public override string ToString() =>
            string.Join("; ", seen.Select(each => $"{each.ErrorSource}: {each.Exception.Message}"));
    }

    ServiceBusProcessor Processor(
        string queue, Func<ProcessMessageEventArgs, Task> handle, ServiceBusProcessorOptions? options = null,
            Errors? errors = null)
    {
        var processor = Own(Client.CreateProcessor(queue, options ?? new ServiceBusProcessorOptions()));
        processor.ProcessMessageAsync += handle;
        processor.ProcessErrorAsync += (errors ?? new Errors()).Note;
        return processor;
    }

    [Scenario("S420", "a processor's concurrency and prefetch hold, and can be changed while it runs")]
    public async Task Concurrency()
    {
        var queue = await CreateQueue("s420");
        await SendNumbered(queue, 60);
        var seen = new ConcurrentBag<string>();
        var gate = new SemaphoreSlim(0);
        var errors = new Errors();
        int working = 0, most = 0;
        var processor = Processor(queue, async message =>
        {
            var now = Interlocked.Increment(ref working);
            for (var before = most; now > before; before = most)
            {
                Interlocked.CompareExchange(ref most, now, before);
            }
            seen.Add(message.Message.Body.ToString());
            // Not with the message's token: fewer calls at once cancel those of the handlers that are too many.
            await gate.WaitAsync(Seconds(40));
            Interlocked.Decrement(ref working);
        }, new ServiceBusProcessorOptions { MaxConcurrentCalls = 2, PrefetchCount = 20 }, errors);

        async Task AtWork(int count)
        {
            try
            {
                await Check.Eventually(() => Task.FromResult(seen.Count == count && working == count), "handlers");
            }
            catch (CheckException)
            {
                Check.True(false, $"wanted {count} at work; {working} are, {seen.Count} have begun; {errors}");
            }
        }

        await processor.StartProcessingAsync();
        await AtWork(2);
        processor.UpdateConcurrency(8);
        await AtWork(8);
        processor.UpdateConcurrency(16);
        // Not to 0: then the client stops to give credit while receives wait, on any broker.
        processor.UpdatePrefetchCount(40);
        await AtWork(16);
        processor.UpdateConcurrency(4);
        gate.Release(100);
        await Check.Eventually(() => Task.FromResult(seen.Count == 60 && working == 0), "all handled");
        Check.Equal(16, most);
        await processor.StopProcessingAsync();
        Check.Equal(Texts(1, 60).Order().ToList(), seen.Order().ToList());
        await Check.Eventually(async () => (await PeekAll(Client.CreateReceiver(queue))).Count == 0, "all completed");
    }

    [Scenario("S421", "a processor reports each error with its source")]
    public async Task ErrorSources()
    {
        // An entity that is not there.
        var errors = new Errors();
        var nowhere = Processor("s421-nowhere", _ => Task.CompletedTask, null, errors);
        await nowhere.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(errors.From(ServiceBusErrorSource.Receive).Any()),
            "an error of receiving");
        var told = errors.From(ServiceBusErrorSource.Receive).First();
        Check.Equal(ServiceBusFailureReason.MessagingEntityNotFound, (told.Exception as ServiceBusException)?.Reason);
        Check.Equal("s421-nowhere", told.EntityPath);
        await nowhere.CloseAsync();

        // A handler that throws: the message is abandoned, and comes again until it is a dead letter.
        var queue = await CreateQueue("s421", options => options.MaxDeliveryCount = 3);
        var handled = 0;
        errors = new Errors();
        var throwing = Processor(queue, message =>
        {
            Interlocked.Increment(ref handled);
            throw new InvalidTimeZoneException("of the handler");
        }, null, errors);
        await Send(queue, Message("thrown"));
        await throwing.StartProcessingAsync();
        var dead = await ReceiveOne(Client.CreateReceiver(queue, DeadLetters));
        Check.Equal("MaxDeliveryCountExceeded", dead.DeadLetterReason);
        Check.Equal(3, handled);
        Check.Equal(3, errors.From(ServiceBusErrorSource.ProcessMessageCallback).Count(
            each => each.Exception is InvalidTimeZoneException));
        await throwing.CloseAsync();

        // A handler that has settled elsewhere: the completion of the processor fails.
        var lost = await CreateQueue("s421b");
        errors = new Errors();
        var other = Connect().CreateReceiver(lost);
        var completing = Processor(lost, message => other.CompleteMessageAsync(message.Message), null, errors);
        await Send(lost, Message("settled elsewhere"));
        await completing.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(errors.From(ServiceBusErrorSource.Complete).Any()),
            "an error of completion");
        var failure = errors.From(ServiceBusErrorSource.Complete).First().Exception as ServiceBusException;
        Check.Equal(ServiceBusFailureReason.MessageLockLost, failure?.Reason);
        await completing.CloseAsync();

        // The same while the processor renews the lock.
        var renewed = await CreateQueue("s421c", options => options.LockDuration = Seconds(5));
        errors = new Errors();
        var third = Connect().CreateReceiver(renewed);
        var renewing = Processor(renewed, async message =>
        {
            await third.CompleteMessageAsync(message.Message);
            await Check.Eventually(() => Task.FromResult(errors.From(ServiceBusErrorSource.RenewLock).Any()),
                "an error of renewal");
        }, new ServiceBusProcessorOptions { AutoCompleteMessages = false }, errors);
        await Send(renewed, Message("renewed"));
        await renewing.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(errors.From(ServiceBusErrorSource.RenewLock).Any()),
            "an error of renewal");
        await renewing.CloseAsync();
    }

    [Scenario("S422", "a processor can be stopped from within its handler, and started again")]
    public async Task StopFromWithin()
    {
        var queue = await CreateQueue("s422", options => options.LockDuration = Seconds(5));
        await SendNumbered(queue, 30);
        var seen = new ConcurrentQueue<string>();
        var stopped = new TaskCompletionSource<Task>(TaskCreationOptions.RunContinuationsAsynchronously);
        ServiceBusProcessor? processor = null;
        processor = Processor(queue, message =>
        {
            seen.Enqueue(message.Message.Body.ToString());
            if (seen.Count == 5)
            {
                // It waits for the handlers, so a handler must not wait for it.
                stopped.SetResult(processor!.StopProcessingAsync());
            }
            return Task.CompletedTask;
        }, new ServiceBusProcessorOptions { PrefetchCount = 10 });
        await processor.StartProcessingAsync();
        await (await stopped.Task.WaitAsync(Deadline)).WaitAsync(Deadline);
        Check.True(!processor.IsProcessing, "it still processes");
        Check.Equal(5, seen.Count);
        Check.Equal(25, (await PeekAll(Client.CreateReceiver(queue))).Count);

        await processor.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(seen.Distinct().Count() == 30),
            "all handled after the second start");
        await Check.Eventually(async () => (await PeekAll(Client.CreateReceiver(queue))).Count == 0, "all completed");
        Check.Equal(30, seen.Count);
        await processor.CloseAsync();
        Check.True(processor.IsClosed, "it is not closed");
        await Check.Throws<ObjectDisposedException>(() => processor.StartProcessingAsync());
    }

    [Scenario("S423", "a stop cancels the handler's token, waits for it, and leaves the message to its lock")]
    public async Task StopCancels()
    {
        var queue = await CreateQueue("s423", options => options.LockDuration = Seconds(5));
        await Send(queue, Message("long"));
        var started = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
        var ended = false;
        var processor = Processor(queue, async message =>
        {
            started.SetResult();
            try
            {
                await Task.Delay(Timeout.Infinite, message.CancellationToken);
            }
            finally
            {
                ended = true;
            }
        });
        await processor.StartProcessingAsync();
        await started.Task.WaitAsync(Deadline);
        await processor.StopProcessingAsync().WaitAsync(Deadline);
        Check.True(ended, "the stop did not wait for the handler");
        var message = await ReceiveOne(Client.CreateReceiver(queue));
        Check.Equal(1, Count(message));
    }

    [Scenario("S424", "a handler settles by itself, and reads more by its receive actions")]
    public async Task HandlerSettles()
    {
        var queue = await CreateQueue("s424");
        await Send(queue, Message("complete"), Message("abandon"), Message("defer"), Message("dead"),
            Message("more 1"), Message("more 2"));
        var done = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
        var (abandoned, more) = (0, new List<string>());
        var processor = Processor(queue, async args =>
        {
            switch (args.Message.Body.ToString())
            {
                case "complete":
                    await args.CompleteMessageAsync(args.Message);
                    break;
                case "abandon" when abandoned++ == 0:
                    await args.AbandonMessageAsync(args.Message, new Dictionary<string, object> { ["note"] = "again" });
                    break;
                case "abandon":
                    Check.Equal<object>("again", args.Message.ApplicationProperties["note"]);
                    await args.CompleteMessageAsync(args.Message);
                    break;
                case "defer":
                    await args.DeferMessageAsync(args.Message);
                    var again = await args.GetReceiveActions().ReceiveDeferredMessagesAsync(
                        [args.Message.SequenceNumber]);
                    Check.Equal("defer", again[0].Body.ToString());
                    await args.CompleteMessageAsync(again[0]);
                    break;
                case "dead":
                    await args.DeadLetterMessageAsync(args.Message, "of the handler", "described");
                    break;
                case "more 1":
                    Check.Equal("more 2", (await args.GetReceiveActions().PeekMessagesAsync(
                        1, args.Message.SequenceNumber + 1))[0].Body.ToString());
                    more.AddRange(Bodies(await args.GetReceiveActions().ReceiveMessagesAsync(1, Deadline)));
                    await args.CompleteMessageAsync(args.Message);
                    done.SetResult();
                    break;
            }
        }, new ServiceBusProcessorOptions { AutoCompleteMessages = false });
        await processor.StartProcessingAsync();
        await done.Task.WaitAsync(Deadline);
        Check.Equal(["more 2"], more);
        Check.Equal(2, abandoned);
        var dead = await ReceiveOne(Client.CreateReceiver(queue, DeadLetters));
        Check.Equal("of the handler", dead.DeadLetterReason);
        Check.Equal("described", dead.DeadLetterErrorDescription);
        // The processor has neither settled nor kept what its handler received by itself.
        Check.Equal(["more 2"], Bodies(await PeekAll(Client.CreateReceiver(queue))));

        // Processors of the dead letters, and of receive-and-delete.
        var bodies = new ConcurrentBag<string>();
        var destructive = Processor(queue, args =>
        {
            bodies.Add(args.Message.Body.ToString());
            return Task.CompletedTask;
        }, new ServiceBusProcessorOptions { SubQueue = SubQueue.DeadLetter,
            ReceiveMode = ServiceBusReceiveMode.ReceiveAndDelete });
        await processor.CloseAsync();
        await Send(queue, Message("dead too"));
        var receiver = Client.CreateReceiver(queue);
        await receiver.DeadLetterMessageAsync(await ReceiveOne(receiver));
        await destructive.StartProcessingAsync();
        await Check.Eventually(() => Task.FromResult(bodies.Contains("dead too")), "a dead letter is handled");
        await Check.Eventually(async () =>
            (await PeekAll(Client.CreateReceiver(queue, DeadLetters))).All(each => each.Body.ToString() != "dead too"),
            "it is gone");
    }

    [Scenario("S425", "a handler learns that its lock is lost, and renewal ends with its maximum")]
    public Task LostLocks() => Task.WhenAll(LostWithoutRenewal(), LostAfterRenewal());

    async Task LostWithoutRenewal()
    {
        var queue = await CreateQueue("s425", options => options.LockDuration = Seconds(10));
        await Send(queue, Message("slow"));
        var lost = new TaskCompletionSource<MessageLockLostEventArgs>(
            TaskCreationOptions.RunContinuationsAsynchronously);
        var again = new TaskCompletionSource<ServiceBusReceivedMessage>(
            TaskCreationOptions.RunContinuationsAsynchronously);
        var errors = new Errors();
        var begun = 0;
        var processor = Processor(queue, async args =>
        {
            if (Interlocked.Increment(ref begun) > 1)
            {
                again.TrySetResult(args.Message);
                return;
            }
            args.MessageLockLostAsync += told =>
            {
                lost.TrySetResult(told);
                return Task.CompletedTask;
            };
            // Client and broker go by clocks of their own: either may be the first to take the lock for lost.
            await Task.WhenAll(again.Task, lost.Task).WaitAsync(Deadline);
        }, new ServiceBusProcessorOptions { MaxAutoLockRenewalDuration = TimeSpan.Zero, MaxConcurrentCalls = 2 },
            errors);
        await processor.StartProcessingAsync();
        Check.Equal(1, Count(await again.Task.WaitAsync(Deadline)));
        Check.Equal("slow", (await lost.Task.WaitAsync(Deadline)).Message.Body.ToString());
        await Check.Eventually(() => Task.FromResult(errors.From(ServiceBusErrorSource.Complete).Any()),
            "the completion fails");
        await Check.Eventually(async () => (await PeekAll(Client.CreateReceiver(queue))).Count == 0,
            "the second handler's is taken");
    }

    async Task LostAfterRenewal()
    {
        var queue = await CreateQueue("s425b", options => options.LockDuration = Seconds(5));
        await Send(queue, Message("renewed"));
        var times = new ConcurrentQueue<DateTimeOffset>();
        var second = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
        // Renewed for 6 s: the lock of 5 s is lost after it has been renewed once or more.
        var processor = Processor(queue, async args =>
        {
            times.Enqueue(Now);
            if (times.Count > 1)
            {
                second.TrySetResult();
                return;
            }
            await second.Task.WaitAsync(Deadline);
        }, new ServiceBusProcessorOptions { MaxAutoLockRenewalDuration = Seconds(6), MaxConcurrentCalls = 2 });
        await processor.StartProcessingAsync();
        await second.Task.WaitAsync(Deadline);
        var passed = times.Last() - times.First();
        Check.True(passed > Seconds(6.5) && passed < Seconds(20), $"it came again after {passed}");
    }
}

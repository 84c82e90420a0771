namespace Interop;

/// <summary>The SDK's processors.</summary>
class Processing : MoreScenarios
{
    ServiceBusProcessor Processor(string queue, Work work, Func<ProcessMessageEventArgs, Task> callback,
        ServiceBusProcessorOptions? options = null)
    {
        var processor = Own(Connect().CreateProcessor(queue, options));
        processor.ProcessMessageAsync += callback;
        processor.ProcessErrorAsync += work.Failed;
        return processor;
    }

    [Scenario("S314", "a processor makes as many calls at once as it may")]
    public async Task AProcessorMakesAsManyCallsAtOnceAsItMay()
    {
        await SendNumbered("s314", 40);
        var work = new Work();
        var processor = Processor("s314", work, async args =>
        {
            await work.WorkTogether(4, Seconds(5));
            work.Add(args.Message);
        }, new ServiceBusProcessorOptions { MaxConcurrentCalls = 4 });
        await processor.StartProcessingAsync();
        await work.Until(40);
        await BecomesEmpty(Client.CreateReceiver("s314"));
        await processor.StopProcessingAsync();
        Check.Equal(4, work.MostAtOnce);
        Check.Equal(Sorted(Texts(1, 40)), Sorted(work.Bodies));
        Check.Equal([], work.Errors);
    }

    [Scenario("S315", "what a callback always fails for is a dead letter")]
    public async Task WhatACallbackAlwaysFailsForIsADeadLetter()
    {
        var work = new Work();
        var counts = new List<int>();
        var processor = Processor("s315", work, args =>
        {
            if (args.Message.Body.ToString() == "2")
            {
                counts.Add(Count(args.Message));
                throw new InvalidOperationException("never that one");
            }
            return work.Take(args);
        });
        await processor.StartProcessingAsync();
        await SendNumbered("s315", 3);
        await work.Until(2);
        var dead = Client.CreateReceiver("s315", DeadLetters);
        var letter = await ReceiveOne(dead);
        Check.Equal("2", letter.Body.ToString());
        Check.Equal("MaxDeliveryCountExceeded", letter.DeadLetterReason);
        await dead.CompleteMessageAsync(letter);
        // It goes on.
        await Send("s315", Message(4));
        await work.Until(3);
        await BecomesEmpty(Client.CreateReceiver("s315"));
        await processor.StopProcessingAsync();
        Check.Equal([0, 1, 2], counts);
        Check.Equal(["1", "3", "4"], work.Bodies);
        Check.Equal(["never that one", "never that one", "never that one"],
            work.Errors.Select(each => each.Message).ToList());
    }

    [Scenario("S316", "a session processor has several sessions at once")]
    public async Task ASessionProcessorHasSeveralSessionsAtOnce()
    {
        var messages =
            from n in Enumerable.Range(1, 5)
            from each in Enumerable.Range(1, 6)
            select InSession($"session {each}", $"{each} {n}");
        await Client.CreateSender("s316").SendMessagesAsync(messages);
        var work = new Work();
        var processor = Own(Connect().CreateSessionProcessor("s316",
            new ServiceBusSessionProcessorOptions { MaxConcurrentSessions = 3, SessionIdleTimeout = Seconds(1) }));
        processor.ProcessMessageAsync += async args =>
        {
            await work.WorkTogether(3, Seconds(5));
            work.Add(args.Message);
        };
        processor.ProcessErrorAsync += work.Failed;
        await processor.StartProcessingAsync();
        await work.Until(30);
        await Send("s316", InSession("session 7", "7 1"));
        await work.Until(31);
        await BecomesEmpty(Client.CreateReceiver("s316"));
        await processor.StopProcessingAsync();
        Check.Equal(3, work.MostAtOnce);
        for (var each = 1; each <= 6; each++)
        {
            Check.Equal(Enumerable.Range(1, 5).Select(n => $"{each} {n}").ToList(),
                work.Bodies.Where(body => body.StartsWith($"{each} ")).ToList());
        }
        Check.Equal(31, work.Bodies.Count);
    }

    [Scenario("S318", "a processor holds the lock while its callback works")]
    public async Task AProcessorHoldsTheLockWhileItsCallbackWorks()
    {
        await Send("s318", Message(1));
        var work = new Work();
        var other = Client.CreateReceiver("s318");
        var processor = Processor("s318", work, async args =>
        {
            work.Add(args.Message);
            // Nobody else gets it for the 8 seconds that the work takes.
            await ReceiveNothing(other, Seconds(8));
        });
        await processor.StartProcessingAsync();
        await work.Until(1);
        await BecomesEmpty(Client.CreateReceiver("s318"));
        await processor.StopProcessingAsync();
        Check.Equal(["1"], work.Bodies);
        Check.Equal([], work.Errors);
        await ReceiveNothing(other);
    }

    [Scenario("S328", "a processor renews a lock for as long as it is told, and no longer")]
    public async Task AProcessorRenewsALockForAsLongAsItIsToldAndNoLonger()
    {
        await Send("s328", Message(1));
        var work = new Work();
        var other = Client.CreateReceiver("s328");
        var done = new TaskCompletionSource<Exception?>();
        var processor = Processor("s328", work, async args =>
        {
            work.Add(args.Message);
            var begin = Now;
            var again = await ReceiveOne(other);
            done.SetResult(await FailureOf(() =>
            {
                Check.Equal(1, Count(again));
                // The renewals prolong the first lock of 5 seconds.
                Check.True(Now - begin >= Seconds(6), $"after {Now - begin}");
                return args.CompleteMessageAsync(args.Message);
            }));
            await other.CompleteMessageAsync(again);
        }, new ServiceBusProcessorOptions { MaxAutoLockRenewalDuration = Seconds(4), AutoCompleteMessages = false });
        await processor.StartProcessingAsync();
        await work.Until(1);
        var failure = await done.Task.WaitAsync(Deadline);
        Check.Equal(ServiceBusFailureReason.MessageLockLost, (failure as ServiceBusException)?.Reason);
        await processor.StopProcessingAsync();
        Check.Equal(["1"], work.Bodies);
        Check.Equal([], Bodies(await PeekAll(other)));
    }

    [Scenario("S329", "a session that cannot be renewed is lost, and says so")]
    public async Task ASessionThatCannotBeRenewedIsLostAndSaysSo()
    {
        await Send("s329", InSession("x", 1));
        var proxy = Own(new FaultProxy());
        var work = new Work();
        var begun = new TaskCompletionSource();
        var lost = new TaskCompletionSource();
        var settled = new TaskCompletionSource<Exception?>();
        var processor = Own(Connect(proxy.ConnectionString, Options(Seconds(3))).CreateSessionProcessor("s329",
            new ServiceBusSessionProcessorOptions
            {
                AutoCompleteMessages = false, MaxAutoLockRenewalDuration = Seconds(30), MaxConcurrentSessions = 1,
            }));
        processor.ProcessMessageAsync += async args =>
        {
            args.SessionLockLostAsync += _ =>
            {
                lost.TrySetResult();
                return Task.CompletedTask;
            };
            begun.TrySetResult();
            await lost.Task.WaitAsync(Deadline);
            settled.TrySetResult(await FailureOf(() => args.CompleteMessageAsync(args.Message)));
        };
        processor.ProcessErrorAsync += work.Failed;
        await processor.StartProcessingAsync();
        await begun.Task.WaitAsync(Deadline);
        proxy.Hold();
        // Another client is refused until the lock has ended.
        ServiceBusSessionReceiver? next = null;
        await Check.Eventually(async () =>
        {
            var failure = await FailureOf(async () => next = await Client.AcceptSessionAsync("s329", "x"));
            return failure == null;
        }, "the session can be accepted anew");
        await lost.Task.WaitAsync(Deadline);
        proxy.Release();
        var refused = await settled.Task.WaitAsync(Deadline);
        var isLost = (refused as ServiceBusException)?.Reason == ServiceBusFailureReason.SessionLockLost;
        Check.True(isLost || refused is ObjectDisposedException, $"{refused}");
        var again = await ReceiveOne(next!);
        Check.Equal("1 1", $"{again.Body} {Count(again)}");
        await next!.CompleteMessageAsync(again);
        await processor.StopProcessingAsync();
    }
}

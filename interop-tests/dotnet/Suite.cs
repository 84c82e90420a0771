using System.Collections.Concurrent;
using System.Diagnostics;
using System.Reflection;

namespace Interop;

/// <summary>
/// Marks a scenario: a public method without parameters that returns a task, in a class derived from Scenarios.
/// </summary>
[AttributeUsage(AttributeTargets.Method)]
sealed class ScenarioAttribute(string numbers, string title) : Attribute
{
    /// <summary>Numbers of scenarios.md, separated by spaces.</summary>
    public string[] Numbers { get; } = numbers.Split(' ', StringSplitOptions.RemoveEmptyEntries);
    public string Title { get; } = title;
    /// <summary>It takes minutes, and so begins first.</summary>
    public bool Long { get; init; }
    /// <summary>It kills the broker, or measures: it runs after the others, by itself.</summary>
    public bool Alone { get; init; }
    /// <summary>It takes longer than the suite may: it runs only when its number is named.</summary>
    public bool ByHand { get; init; }
    public int Seconds { get; init; } = 120;
}

/// <summary>Runs the files (classes) and scenarios named, or all, and prints a line for each.</summary>
static class Suite
{
    /// <summary>Scenarios mostly wait, for locks to expire and messages to come due: many run at once.</summary>
    const int Together = 16;

    sealed record Case(Type Class, MethodInfo Method, ScenarioAttribute Scenario)
    {
        public string Name => $"{string.Join(' ', Scenario.Numbers)} {Scenario.Title}".TrimStart();

        public bool IsMeant(string word) =>
            (word.Equals(Class.Name, StringComparison.OrdinalIgnoreCase) && !Scenario.ByHand)
            || Scenario.Numbers.Contains(word, StringComparer.OrdinalIgnoreCase);
    }

    static async Task<int> Main(string[] words)
    {
        var cases = Cases().Where(each => words.Length == 0 ? !each.Scenario.ByHand : words.Any(each.IsMeant)).ToList();
        var results = new ConcurrentBag<bool>();
        using var places = new SemaphoreSlim(Together);
        var running = new List<Task>();
        foreach (var each in cases.Where(each => !each.Scenario.Alone).OrderByDescending(each => each.Scenario.Long))
        {
            await places.WaitAsync();
            running.Add(Task.Run(async () =>
            {
                results.Add(await Run(each));
                places.Release();
            }));
        }
        await Task.WhenAll(running);
        foreach (var each in cases.Where(each => each.Scenario.Alone))
        {
            results.Add(await Run(each));
        }
        return results.Count > 0 && results.All(passed => passed) ? 0 : 1;
    }

    static IEnumerable<Case> Cases() =>
        from type in Assembly.GetExecutingAssembly().GetTypes()
        where type.IsSubclassOf(typeof(Scenarios)) && !type.IsAbstract
        from method in type.GetMethods()
        let scenario = method.GetCustomAttribute<ScenarioAttribute>()
        where scenario != null
        orderby type.Name, method.MetadataToken
        select new Case(type, method, scenario);

    static async Task<bool> Run(Case each)
    {
        var begin = Stopwatch.GetTimestamp();
        Exception? failure = null;
        try
        {
            var scenarios = (Scenarios)Activator.CreateInstance(each.Class)!;
            try
            {
                await ((Task)each.Method.Invoke(scenarios, null)!)
                    .WaitAsync(TimeSpan.FromSeconds(each.Scenario.Seconds));
            }
            finally
            {
                await scenarios.DisposeAsync().AsTask().WaitAsync(TimeSpan.FromSeconds(30));
            }
        }
        catch (Exception error)
        {
            failure = error is TargetInvocationException { InnerException: { } inner } ? inner : error;
        }
        var milliseconds = (long)Stopwatch.GetElapsedTime(begin).TotalMilliseconds;
        Say($"{(failure == null ? "ok    " : "FAIL  ")}{each.Name} ({milliseconds} ms)"
            + (failure == null ? "" : Described(failure)));
        return failure == null;
    }

    static readonly Lock printing = new();

    static void Say(string text)
    {
        lock (printing)
        {
            Console.Out.WriteLine(text);
            Console.Out.Flush();
        }
    }

    /// <summary>The failure, where in the suite it came about, and its causes.</summary>
    static string Described(Exception failure)
    {
        var text = "";
        for (Exception? each = failure; each != null; each = each.InnerException)
        {
            text += $"\n      {each.GetType().Name}: {each.Message.ReplaceLineEndings("\n      ")}";
            var frames = (each.StackTrace ?? "").Split('\n').Where(frame => frame.Contains("Interop.")).Take(6);
            text += string.Concat(frames.Select(frame => $"\n        {frame.Trim()}"));
        }
        return text;
    }
}

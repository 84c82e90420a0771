using System.Diagnostics;
using System.Reflection;

namespace Interop.Lite;

/// <summary>A test: a static method, whose title is what it shows.</summary>
[AttributeUsage(AttributeTargets.Method)]
public sealed class TestAttribute(string title) : Attribute
{
    public string Title { get; } = title;
}

/// <summary>What a test expected and did not find.</summary>
public sealed class Unexpected(string message) : Exception(message);

/// <summary>Runs the tests of this program one after the other, and prints a line for each.</summary>
public static class Program
{
    private static readonly TimeSpan TestMax = TimeSpan.FromSeconds(30);

    public static async Task<int> Main(string[] words)
    {
        var tests = Assembly.GetExecutingAssembly().GetTypes()
            .SelectMany(type => type.GetMethods(BindingFlags.Static | BindingFlags.Public))
            .Select(method => (Method: method, method.GetCustomAttribute<TestAttribute>()?.Title))
            .Where(test => test.Title is not null)
            .Where(test => words.Length == 0
                || words.Any(word => test.Title!.Contains(word, StringComparison.OrdinalIgnoreCase)))
            .OrderBy(test => test.Method.DeclaringType!.Name).ThenBy(test => test.Method.MetadataToken);
        var failed = 0;
        foreach (var (method, title) in tests)
        {
            var clock = Stopwatch.StartNew();
            try
            {
                await Task.Run(() => (Task)method.Invoke(null, null)!).WaitAsync(TestMax);
                Console.WriteLine($"ok    {title} ({clock.ElapsedMilliseconds} ms)");
            }
            catch (Exception error)
            {
                failed++;
                Console.WriteLine($"FAIL  {title} ({clock.ElapsedMilliseconds} ms)");
                Console.WriteLine("      " + error.ToString().ReplaceLineEndings("\n      "));
            }
        }
        return failed == 0 ? 0 : 1;
    }
}

/// <summary>Assertions.</summary>
public static class Expect
{
    public static void Equal<T>(T expected, T actual, string what)
    {
        if (!EqualityComparer<T>.Default.Equals(expected, actual))
        {
            throw new Unexpected($"{what}: expected {expected}, found {actual}");
        }
    }

    public static void True(bool holds, string what)
    {
        if (!holds)
        {
            throw new Unexpected(what);
        }
    }

    /// <summary>Waits until the condition holds.</summary>
    public static async Task Until(Func<bool> condition, string what)
    {
        var clock = Stopwatch.StartNew();
        while (!condition())
        {
            if (clock.Elapsed > TimeSpan.FromSeconds(15))
            {
                throw new Unexpected($"not within 15 s: {what}");
            }
            await Task.Delay(10);
        }
    }
}

// Runs the tests in frameworks/ as their frameworks do: the start for an assembly or a collection, the tests, the end.
using System.Reflection;
using Microsoft.VisualStudio.TestTools.UnitTesting;
using NUnit.Framework;
using Xunit;

namespace Example;

static class Check
{
    public static void Equal<T>(T expected, T actual)
    {
        if (!Equals(expected, actual)) throw new InvalidOperationException($"expected {expected}, got {actual}");
    }
}

static class Program
{
    static readonly Type[] Types = Assembly.GetExecutingAssembly().GetTypes();

    static async Task<int> Main()
    {
#if CSRUN
        // There is no output directory: the files are here.
        AppContext.SetData("APP_CONTEXT_BASE_DIRECTORY", Directory.GetCurrentDirectory());
#endif
        var results = new List<bool>();
        results.AddRange(await OfXunit());
        results.AddRange(await OfNUnit());
        results.AddRange(await OfMSTest());
        return results.Count == 4 && results.All(passed => passed) ? 0 : 1;
    }

    /// <summary>A fixture for each collection; a new instance of the class for each test.</summary>
    static async Task<bool[]> OfXunit()
    {
        var definition = Types.Single(type => type.GetCustomAttribute<CollectionDefinitionAttribute>() != null);
        var name = definition.GetCustomAttribute<CollectionDefinitionAttribute>()!.Name;
        var kind = definition.GetInterfaces().Single().GetGenericArguments().Single();
        var fixture = (IAsyncLifetime)Activator.CreateInstance(kind)!;
        await fixture.InitializeAsync();
        var classes = Types.Where(type => type.GetCustomAttribute<CollectionAttribute>()?.Name == name);
        var results = await Run<FactAttribute>(classes, type => Activator.CreateInstance(type, fixture)!);
        await fixture.DisposeAsync();
        return results;
    }

    /// <summary>The fixture of the namespace before and after all of its tests.</summary>
    static async Task<bool[]> OfNUnit()
    {
        var type = Types.Single(type => type.GetCustomAttribute<SetUpFixtureAttribute>() != null);
        var fixture = Activator.CreateInstance(type);
        await Call<OneTimeSetUpAttribute>(type, fixture);
        var results = await Run<TestAttribute>(Types.Where(other => other.Namespace == type.Namespace));
        await Call<OneTimeTearDownAttribute>(type, fixture);
        return results;
    }

    /// <summary>Static methods before and after all tests of the assembly.</summary>
    static async Task<bool[]> OfMSTest()
    {
        var classes = Types.Where(type => type.GetCustomAttribute<TestClassAttribute>() != null).ToArray();
        var type = classes.Single(type => Marked<AssemblyInitializeAttribute>(type).Any());
        await Call<AssemblyInitializeAttribute>(type, null, new TestContext());
        var results = await Run<TestMethodAttribute>(classes);
        await Call<AssemblyCleanupAttribute>(type, null);
        return results;
    }

    static IEnumerable<MethodInfo> Marked<TAttribute>(Type type) where TAttribute : Attribute =>
        type.GetMethods().Where(method => method.GetCustomAttribute<TAttribute>() != null);

    static Task Call<TAttribute>(Type type, object? instance, params object[] arguments) where TAttribute : Attribute =>
        (Task)Marked<TAttribute>(type).Single().Invoke(instance, arguments)!;

    /// <summary>Runs all tests of some classes at the same time.</summary>
    static Task<bool[]> Run<TAttribute>(IEnumerable<Type> classes, Func<Type, object>? create = null)
        where TAttribute : Attribute
    {
        async Task<bool> Test(Type type, MethodInfo method)
        {
            var name = $"{type.Namespace}.{type.Name}.{method.Name}";
            try
            {
                await (Task)method.Invoke(create?.Invoke(type) ?? Activator.CreateInstance(type), null)!;
                Console.WriteLine($"ok {name}");
                return true;
            }
            catch (Exception error)
            {
                Console.WriteLine($"FAIL {name}: {error}");
                return false;
            }
        }

        return Task.WhenAll(classes.SelectMany(type => Marked<TAttribute>(type).Select(method => Test(type, method))));
    }
}

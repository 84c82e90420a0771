using System.Reflection;
using System.Text.Json;

namespace Interop;

/// <summary>
/// Compares what the SDK has (its public methods, events and settable properties) with what this program refers to.
/// Calls and accesses are in the table of member references of the compiled program, each overload by itself.
/// </summary>
class Coverage : Scenarios
{
    const string Exceptions = "not-called.json";

    /// <summary>Of these types only the name is needed: users of the SDK make them for tests of their own.</summary>
    static readonly Type[] Apart = [typeof(ServiceBusModelFactory)];

    [Scenario("S561", "every method and option of the SDK is used by a scenario, or not-called.json says why not")]
    public Task EveryMethodAndOptionIsUsed()
    {
        var module = typeof(Coverage).Module;
        var used = References(module).Concat(Overrides(module)).ToHashSet();
        var members = Members().GroupBy(Name).ToDictionary(each => each.Key, each => each.Any(used.Contains));
        var reasons = JsonSerializer.Deserialize<Dictionary<string, string>>(File.ReadAllText(Exceptions))!;
        List<string> complaints =
        [
            .. members.Where(each => !each.Value && !reasons.ContainsKey(each.Key))
                .Select(each => $"{each.Key} is used by no scenario").Order(),
            .. reasons.Keys.Where(each => !members.ContainsKey(each))
                .Select(each => $"{each} is in {Exceptions}, but not in the SDK"),
            .. reasons.Keys.Where(each => members.GetValueOrDefault(each))
                .Select(each => $"{each} is in {Exceptions}, but is used"),
            .. reasons.Where(each => string.IsNullOrWhiteSpace(each.Value))
                .Select(each => $"{each.Key} has no reason in {Exceptions}"),
        ];
        Check.True(members.Count > 300, $"the SDK has {members.Count} members");
        Check.True(complaints.Count == 0,
            $"of {members.Count} members {complaints.Count} are wrong:\n{string.Join('\n', complaints)}");
        return Task.CompletedTask;
    }

    /// <summary>The methods, constructors, events and settable properties that users of the SDK call.</summary>
    static IEnumerable<MethodBase> Members() =>
        from type in typeof(ServiceBusClient).Assembly.GetExportedTypes()
        where type.IsClass && !type.IsSubclassOf(typeof(Exception)) && !Apart.Contains(type)
        where type.Namespace!.StartsWith(typeof(ServiceBusClient).Namespace!)
            || type.Namespace == "Microsoft.Extensions.Azure"
        from method in Declared(type)
        where !IsOfObject(method) && method.Name != nameof(Equals)
        select Base(method);

    static IEnumerable<MethodBase> Declared(Type type)
    {
        const BindingFlags all =
            BindingFlags.Public | BindingFlags.Instance | BindingFlags.Static | BindingFlags.DeclaredOnly;
        // What the SDK makes itself has constructors only for tests of its users.
        var constructors = type.GetConstructors(all)
            .Where(each => !type.Name.EndsWith("EventArgs") && each.GetParameters().Length > 0);
        var methods = type.GetMethods(all).Where(each => !each.IsSpecialName);
        var events = type.GetEvents(all).Select(each => each.AddMethod!);
        var properties = type.GetProperties(all).Select(each =>
            each.SetMethod is { IsPublic: true } set ? set : IsCollection(each.PropertyType) ? each.GetMethod : null);
        return constructors.Cast<MethodBase>().Concat(methods).Concat(events).Concat(properties.OfType<MethodBase>());
    }

    static bool IsCollection(Type type) =>
        type != typeof(string) && type.IsAssignableTo(typeof(System.Collections.IEnumerable));

    static bool IsOfObject(MethodBase method) =>
        method is MethodInfo info && info.GetBaseDefinition().DeclaringType == typeof(object);

    /// <summary>Calls of an override refer to the method that it overrides.</summary>
    static MethodBase Base(MethodBase method) => method is MethodInfo info ? info.GetBaseDefinition() : method;

    static string Name(MethodBase method)
    {
        var type = method.DeclaringType!.Name;
        var name = method.IsConstructor ? "new" : method.Name;
        var parameters = method.GetParameters().Select(each => Short(each.ParameterType));
        return name.Split('_', 2) switch
        {
            ["set" or "get" or "add", var member] => $"{type}.{member}",
            _ => $"{type}.{name}({string.Join(", ", parameters)})",
        };
    }

    static string Short(Type type) => !type.IsGenericType ? type.Name
        : $"{type.Name.Split('`')[0]}<{string.Join(", ", type.GetGenericArguments().Select(Short))}>";

    /// <summary>What a module overrides, for the SDK to call.</summary>
    static IEnumerable<MethodBase> Overrides(Module module) =>
        from type in module.GetTypes()
        from method in type.GetMethods(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly)
        where method.GetBaseDefinition() != method
        select method.GetBaseDefinition();

    /// <summary>The methods of other assemblies that a module refers to, from its metadata.</summary>
    static IEnumerable<MethodBase> References(Module module)
    {
        const int memberReferences = 0x0A000000, specifications = 0x2B000000;
        foreach (var table in new[] { memberReferences, specifications })
        {
            for (var row = 1; ; row += 1)
            {
                MethodBase? method;
                try
                {
                    method = module.ResolveMember(table | row, [], []) as MethodBase;
                }
                catch (ArgumentOutOfRangeException)
                {
                    // Beyond the table's last row.
                    break;
                }
                catch (Exception error) when (error is BadImageFormatException or ArgumentException)
                {
                    // It needs the type parameters of a generic method: none of the SDK's own does.
                    continue;
                }
                if (method is MethodInfo { IsGenericMethod: true } generic)
                {
                    yield return generic.GetGenericMethodDefinition();
                }
                else if (method != null)
                {
                    yield return Base(method);
                }
            }
        }
    }
}

using System.Collections;

namespace Interop;

/// <summary>What the SDK's descriptions of entities say, property by property, as texts that can be compared.</summary>
static class Described
{
    /// <summary>Every property that a description tells to its users.</summary>
    public static SortedDictionary<string, string> Of(object description) =>
        new(description.GetType().GetProperties()
            .ToDictionary(each => each.Name, each => Told(each.GetValue(description))));

    /// <summary>Checks that two descriptions say the same, but for properties of which only one has the name.</summary>
    public static void Same(object wanted, object got, params string[] loose)
    {
        var (all, there) = (Of(wanted), Of(got));
        foreach (var (name, value) in all)
        {
            if (there.TryGetValue(name, out var other) && !loose.Contains(name))
            {
                Check.Equal($"{name}: {value}", $"{name}: {other}");
            }
        }
        Check.True(all.Keys.Intersect(there.Keys).Count() >= there.Count - 1, "the descriptions have little in common");
    }

    static string Told(object? value) => value switch
    {
        null => "",
        string text => text,
        // The times of a rule are the client's, and the SDK sends none.
        SharedAccessAuthorizationRule rule => string.Join(' ',
            [rule.KeyName, rule.ClaimType, rule.PrimaryKey, rule.SecondaryKey,
                .. rule.Rights.Order().Select(each => $"{each}")]),
        IEnumerable many => string.Join("; ", many.Cast<object>().Select(Told).Order()),
        _ => value.ToString()!,
    };

    /// <summary>A rule's filter and action, with the types of its values.</summary>
    public static string Of(RuleFilter filter, RuleAction? action) => filter switch
    {
        TrueRuleFilter => "true",
        FalseRuleFilter => "false",
        SqlRuleFilter sql => $"{sql.SqlExpression}{Values(sql.Parameters)}",
        CorrelationRuleFilter fields =>
            string.Join(", ", Of((object)fields).Where(each => each.Key != "ApplicationProperties" && each.Value != "")
            .Select(each => $"{each.Key} {each.Value}")) + Values(fields.ApplicationProperties),
        _ => filter.ToString()!,
    } + (action is SqlRuleAction act ? $"; {act.SqlExpression}{Values(act.Parameters)}" : "");

    static string Values(IDictionary<string, object> values) =>
        string.Concat(
            values.OrderBy(each => each.Key).Select(each => $" {each.Key}={each.Value.GetType().Name} {each.Value}"));
}

// What the three files in frameworks/ use of their frameworks, whose packages this suite does not have. Program.cs
// calls the methods with these attributes in the order of each framework.

namespace Xunit
{
    public interface IAsyncLifetime : IAsyncDisposable
    {
        ValueTask InitializeAsync();
    }

    public interface ICollectionFixture<TFixture> where TFixture : class;

    [AttributeUsage(AttributeTargets.Class)]
    public sealed class CollectionDefinitionAttribute(string name) : Attribute
    {
        public string Name => name;
    }

    [AttributeUsage(AttributeTargets.Class)]
    public sealed class CollectionAttribute(string name) : Attribute
    {
        public string Name => name;
    }

    [AttributeUsage(AttributeTargets.Method)]
    public sealed class FactAttribute : Attribute;

    public static class Assert
    {
        public static void Equal<T>(T expected, T actual) => Example.Check.Equal(expected, actual);

        public static void Equal<T>(IEnumerable<T> expected, IEnumerable<T> actual) =>
            Example.Check.Equal(string.Join(", ", expected), string.Join(", ", actual));
    }
}

namespace NUnit.Framework
{
    [AttributeUsage(AttributeTargets.Class)]
    public sealed class SetUpFixtureAttribute : Attribute;

    [AttributeUsage(AttributeTargets.Method)]
    public sealed class OneTimeSetUpAttribute : Attribute;

    [AttributeUsage(AttributeTargets.Method)]
    public sealed class OneTimeTearDownAttribute : Attribute;

    [AttributeUsage(AttributeTargets.Method)]
    public sealed class TestAttribute : Attribute;

    public sealed record Constraint(object Expected);

    public static class Is
    {
        public static Constraint EqualTo(object expected) => new(expected);
    }

    public static class Assert
    {
        public static void That(object actual, Constraint constraint) =>
            Example.Check.Equal(constraint.Expected, actual);
    }
}

namespace Microsoft.VisualStudio.TestTools.UnitTesting
{
    public sealed class TestContext;

    [AttributeUsage(AttributeTargets.Class)]
    public sealed class TestClassAttribute : Attribute;

    [AttributeUsage(AttributeTargets.Method)]
    public sealed class AssemblyInitializeAttribute : Attribute;

    [AttributeUsage(AttributeTargets.Method)]
    public sealed class AssemblyCleanupAttribute : Attribute;

    [AttributeUsage(AttributeTargets.Method)]
    public sealed class TestMethodAttribute : Attribute;

    public static class Assert
    {
        public static void AreEqual<T>(T expected, T actual) => Example.Check.Equal(expected, actual);
    }
}

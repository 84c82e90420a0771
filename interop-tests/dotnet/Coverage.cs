namespace Interop;

static class Coverage
{
    public static int Print() => 1;
}

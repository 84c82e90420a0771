//! The `jitney` command.
fn main() {}

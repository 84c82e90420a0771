//! Supervision of the tasks and threads that last as long as the broker.
//!
//! Each of them has an owner, which allows it to end. An end without permission, and a panic at any
//! time, are logged with name and cause, and end the process: other parts would wait for the task
//! or the thread for ever, and the next start recovers the log.
//!
//! Tasks of connections are not supervised: a panic ends the connection only.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::logging;

/// A task that the broker cannot do without.
#[derive(Debug)]
pub(crate) struct Task {
    handle: tokio::task::JoinHandle<()>,
    may_end: MayEnd,
}

/// A thread that the broker cannot do without.
#[derive(Debug)]
pub(crate) struct Thread {
    handle: thread::JoinHandle<()>,
    may_end: MayEnd,
}

/// Whether an end by return is expected.
#[derive(Debug, Clone, Default)]
struct MayEnd(Arc<AtomicBool>);

/// An end without permission.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Panicked(String),
    Returned,
}

/// Starts a task. If it fails, the process ends.
pub(crate) fn spawn(
    name: impl Into<Cow<'static, str>>,
    work: impl Future<Output = ()> + Send + 'static,
) -> Task {
    let name = name.into();
    spawn_task(work, move |failure| end_process("task", &name, &failure))
}

/// Starts a thread. If it fails, the process ends.
///
/// # Errors
///
/// If the system has no thread for it.
pub(crate) fn spawn_thread(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<Thread> {
    let may_end = MayEnd::default();
    let expected = may_end.clone();
    let handle = spawn_watched(name, work, move |end| {
        if let Some(failure) = expected.failure(end) {
            end_process("thread", name, &failure);
        }
    })?;
    Ok(Thread { handle, may_end })
}

/// Starts a thread that does one job, and reports its end. The broker can do without it.
///
/// # Errors
///
/// If the system has no thread for it.
pub(crate) fn spawn_watched(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
    ended: impl FnOnce(thread::Result<()>) + Send + 'static,
) -> io::Result<thread::JoinHandle<()>> {
    // None of the job's state is used after a panic.
    let watched = move || ended(catch_unwind(AssertUnwindSafe(work)));
    thread::Builder::new().name(name.to_owned()).spawn(watched)
}

fn spawn_task(
    work: impl Future<Output = ()> + Send + 'static,
    failed: impl FnOnce(Failure) + Send + 'static,
) -> Task {
    let may_end = MayEnd::default();
    let expected = may_end.clone();
    let work = tokio::spawn(work);
    let handle = tokio::spawn(async move {
        let end = match work.await {
            Ok(()) => Ok(()),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => Err(panic),
                // It was cancelled, which happens only at the end of the runtime.
                Err(_) => return,
            },
        };
        if let Some(failure) = expected.failure(end) {
            failed(failure);
        }
    });
    Task { handle, may_end }
}

fn end_process(kind: &str, name: &str, failure: &Failure) -> ! {
    logging::fatal(format_args!(
        "the {kind} {name} {failure}, which is a bug: the broker ends, and the next start recovers \
         the log"
    ));
    std::process::exit(1);
}

impl Task {
    /// Allows it to return from now on.
    pub(crate) fn allow_end(&self) {
        self.may_end.allow();
    }

    /// Allows it to end, and waits for that.
    pub(crate) async fn join(self) {
        self.allow_end();
        // Its end was checked where it happened.
        let _ = self.handle.await;
    }
}

impl Thread {
    /// Allows it to return from now on. Its owner calls this before it drops what the thread waits
    /// for.
    pub(crate) fn allow_end(&self) {
        self.may_end.allow();
    }

    /// Wakes it if it is parked, allows it to end, and waits for that.
    pub(crate) fn join(self) {
        self.allow_end();
        self.handle.thread().unpark();
        let _ = self.handle.join();
    }
}

impl MayEnd {
    fn allow(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns the fault of an end, if it is one.
    fn failure(&self, end: thread::Result<()>) -> Option<Failure> {
        match end {
            Err(panic) => Some(Failure::Panicked(message(&*panic))),
            Ok(()) if self.0.load(Ordering::Relaxed) => None,
            Ok(()) => Some(Failure::Returned),
        }
    }
}

/// Returns the message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no text").to_owned()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(message) => write!(f, "has panicked ({message})"),
            Self::Returned => f.write_str("ended unexpectedly"),
        }
    }
}

#[cfg(test)]
mod tests;

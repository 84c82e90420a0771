//! Ends of tasks and threads, expected and not.

use std::process::Command;
use std::sync::mpsc;

use tokio::sync::oneshot;

use super::*;

/// Starts a task whose failure is reported.
fn reporting(
    work: impl Future<Output = ()> + Send + 'static,
) -> (Task, oneshot::Receiver<Failure>) {
    let (report, failure) = oneshot::channel();
    let task = spawn_task(work, |failure| report.send(failure).unwrap());
    (task, failure)
}

#[tokio::test]
async fn the_end_of_a_task_is_a_failure_unless_it_was_allowed() {
    let (_task, failure) = reporting(async {});
    assert_eq!(failure.await, Ok(Failure::Returned));

    let (end, ended) = oneshot::channel::<()>();
    let (task, failure) = reporting(async move { drop(ended.await) });
    task.allow_end();
    drop(end);
    task.join().await;
    assert!(failure.await.is_err(), "nothing has failed");
}

#[tokio::test]
async fn a_panic_is_a_failure_at_any_time_and_told_with_its_text() {
    for (text, is_allowed) in [("a text", false), ("another", true)] {
        let (go, gone) = oneshot::channel::<()>();
        let (task, failure) = reporting(async move {
            let _ = gone.await;
            panic!("{text}");
        });
        if is_allowed {
            task.allow_end();
        }
        drop(go);
        assert_eq!(failure.await, Ok(Failure::Panicked(text.to_owned())));
    }
}

#[test]
fn the_end_of_a_thread_is_reported_with_what_a_panic_says() {
    let (tell, told) = mpsc::channel();
    let report = tell.clone();
    let thread = spawn_watched("returns", || (), move |end| report.send(end).unwrap());
    thread.unwrap().join().unwrap();
    let end = told.recv().unwrap();
    assert_eq!(MayEnd::default().failure(end), Some(Failure::Returned));
    let allowed = MayEnd::default();
    allowed.allow();
    assert_eq!(allowed.failure(Ok(())), None);

    let panics = || panic!("as it is to");
    let thread = spawn_watched("panics", panics, move |end| tell.send(end).unwrap());
    thread.unwrap().join().unwrap();
    let failure = allowed.failure(told.recv().unwrap());
    assert_eq!(failure, Some(Failure::Panicked("as it is to".to_owned())));
}

/// The failure of a process of its own: the tests below start it.
const FAILS: &str = "JITNEY_TEST_FAILS";

/// Runs one of these tests in another process, in which it is to end the process.
fn ends(test: &str) -> (Option<i32>, String) {
    let name = format!("system::supervisor::tests::{test}");
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name.as_str(), "--exact", "--nocapture"])
        .env(FAILS, "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

fn is_to_fail() -> bool {
    std::env::var_os(FAILS).is_some()
}

#[test]
fn a_task_that_fails_ends_the_process_with_its_name_and_cause() {
    if is_to_fail() {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        runtime.block_on(async {
            let _task = spawn("of a test", async { panic!("as it is to") });
            std::future::pending::<()>().await;
        });
    }
    let (code, text) = ends("a_task_that_fails_ends_the_process_with_its_name_and_cause");
    assert_eq!(code, Some(1), "{text}");
    let expected = "the task of a test has panicked (as it is to)";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_thread_that_fails_ends_the_process_with_its_name_and_cause() {
    if is_to_fail() {
        let _thread = spawn_thread("of a test", || ()).unwrap();
        loop {
            thread::park();
        }
    }
    let (code, text) = ends("a_thread_that_fails_ends_the_process_with_its_name_and_cause");
    assert_eq!(code, Some(1), "{text}");
    let expected = "the thread of a test ended unexpectedly";
    assert!(text.contains(expected), "{text}");
}

//! Helper threads, whose end is noticed: what waits for one that has panicked would wait for ever.

use std::io;
use std::thread::{self, JoinHandle};

use super::logging;

/// Starts a thread that the broker cannot do without: if it panics, the process ends.
///
/// # Errors
///
/// If the system has no thread for it.
pub(super) fn spawn(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    spawn_watched(name, work, move || {
        logging::fatal(format_args!(
            "the thread {name} has panicked, which is a bug: the broker ends, and the next start \
             recovers the log"
        ));
        std::process::exit(1);
    })
}

/// Starts a thread that does `panicked` if it panics.
///
/// # Errors
///
/// If the system has no thread for it.
pub(super) fn spawn_watched(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
    panicked: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let watch = Watch(Some(panicked));
    let watched = move || {
        let _watch = watch;
        work();
    };
    thread::Builder::new().name(name.to_owned()).spawn(watched)
}

struct Watch<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for Watch<F> {
    fn drop(&mut self) {
        if thread::panicking()
            && let Some(panicked) = self.0.take()
        {
            panicked();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_panic_is_noticed_and_an_orderly_end_is_none() {
        let (tell, told) = mpsc::channel();
        let panics = tell.clone();
        let thread = spawn_watched("ends", || (), move || panics.send("ends").unwrap());
        thread.unwrap().join().unwrap();
        let panics = tell;
        let thread = spawn_watched(
            "panics",
            || panic!("as it is to"),
            move || panics.send("panics").unwrap(),
        );
        assert!(thread.unwrap().join().is_err());
        assert_eq!(told.into_iter().collect::<Vec<_>>(), ["panics"]);
    }
}

//! The signals of the process.

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Signalled, SignalKind, signal};

use crate::system::{logging, supervisor};

/// A write beyond the limit of file sizes fails, and the writer reports it: the default action of
/// its signal would end the process without a word.
pub(super) fn survive_long_files() -> std::io::Result<()> {
    // The handler stays, though no task waits for the signal.
    drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?);
    Ok(())
}

/// The signals that end the broker.
pub(super) struct Signals {
    terminate: Signalled,
    interrupt: Signalled,
}

impl Signals {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Lets the next signal end the process at once, from a thread of its own, whatever the rest of the
/// process waits for.
pub(super) fn end_at_next_signal() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = {
        let _within = runtime.enter();
        Signals::new()?
    };
    let wait = move || {
        runtime.block_on(signals.next());
        logging::fatal(
            "a second signal: the broker ends at once, and the next start recovers the log",
        );
        std::process::exit(1);
    };
    supervisor::spawn_thread("signals", wait)?;
    Ok(())
}

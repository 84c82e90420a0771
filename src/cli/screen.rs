//! The whole terminal, for a command that draws pictures until it is told to end. The terminal is as it was before when this
//! is dropped.

use std::io::{self, IsTerminal as _};
use std::pin::pin;

use rustix::fs::{Mode, OFlags};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::system::print;

/// A terminal on which pictures are drawn.
#[derive(Debug)]
pub(super) struct Screen {
    /// Nothing without a terminal of its own: then only a signal ends the command.
    keys: Option<Receiver>,
    /// As it was before.
    modes: Option<Termios>,
    resized: Signal,
    /// Each ends the command.
    ends: [Signal; 3],
}

/// What happens at a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// The command is to end.
    Quit,
    /// The picture is to begin so many lines further down.
    Scroll(isize),
    /// The picture is to begin at the first line.
    First,
    /// It is to be drawn again: the terminal has another size.
    Draw,
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScreenSize {
    pub(super) columns: usize,
    pub(super) lines: usize,
}

/// Where a terminal does not tell its size.
const USUAL: ScreenSize = ScreenSize {
    columns: 80,
    lines: 24,
};
/// Another screen than that of the shell, without a cursor and without the wrapping of long lines.
const BEGIN: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const END: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";
/// Bytes of keys that are read at a time.
const KEYS: usize = 64;
/// Lines that a key for a page scrolls.
const PAGE: isize = 10;

impl Screen {
    /// Takes the terminal; `None` if standard output is none.
    ///
    /// # Errors
    ///
    /// Signals cannot be followed.
    pub(super) fn open() -> io::Result<Option<Self>> {
        if !io::stdout().is_terminal() {
            return Ok(None);
        }
        let ends = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ];
        let resized = signal(SignalKind::window_change())?;
        let keys = open_keys();
        let modes = keys.as_ref().and_then(|keys| tcgetattr(keys).ok());
        if let (Some(keys), Some(modes)) = (&keys, &modes) {
            let mut changed = modes.clone();
            // Keys come one by one, and are not shown; those for signals come as keys.
            changed.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            let _ = tcsetattr(keys, OptionalActions::Now, &changed);
        }
        print::control(BEGIN);
        Ok(Some(Self {
            keys,
            modes,
            resized,
            ends,
        }))
    }

    /// Returns the size of the terminal.
    pub(super) fn size() -> ScreenSize {
        let size = tcgetwinsize(io::stdout()).ok();
        let size = size.filter(|size| size.ws_row != 0 && size.ws_col != 0);
        size.map_or(USUAL, |size| ScreenSize {
            // The last one stays empty: the rest of a line is cleared behind its text, and there that is the last character.
            columns: usize::from(size.ws_col) - 1,
            lines: size.ws_row.into(),
        })
    }

    /// Draws a picture, which has no more lines than the terminal.
    pub(super) fn draw(picture: &str) {
        let picture = print::visible(picture);
        let lines = picture.lines().collect::<Vec<_>>();
        // The rest of each line, and what is below the last, is cleared.
        let text = lines.join("\u{1b}[K\n");
        print::control(format_args!("\u{1b}[H{text}\u{1b}[J"));
    }

    /// Waits for what happens next.
    pub(super) async fn next(&mut self) -> Action {
        let [interrupt, terminate, hangup] = &mut self.ends;
        let keys = pin!(next_key(self.keys.as_mut()));
        tokio::select! {
            action = keys => action,
            _ = self.resized.recv() => Action::Draw,
            _ = interrupt.recv() => Action::Quit,
            _ = terminate.recv() => Action::Quit,
            _ = hangup.recv() => Action::Quit,
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        print::control(END);
        if let (Some(keys), Some(modes)) = (&self.keys, &self.modes) {
            let _ = tcsetattr(keys, OptionalActions::Now, modes);
        }
    }
}

/// Opens the terminal once more: what is not to wait there is to wait elsewhere.
fn open_keys() -> Option<Receiver> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()?;
    // A terminal is read as a pipe is.
    Receiver::from_owned_fd_unchecked(opened).ok()
}

async fn next_key(keys: Option<&mut Receiver>) -> Action {
    let Some(keys) = keys else {
        return std::future::pending().await;
    };
    loop {
        let mut bytes = [0; KEYS];
        match keys.read(&mut bytes).await {
            // The terminal has gone.
            Ok(0) | Err(_) => return Action::Quit,
            Ok(count) => {
                let read = bytes.get(..count).unwrap_or_default();
                if let Some(action) = action_of(read) {
                    return action;
                }
            }
        }
    }
}

/// Returns what keys mean that were read at once: several presses may be.
fn action_of(mut keys: &[u8]) -> Option<Action> {
    let mut scrolled = 0;
    let mut found = None;
    while !keys.is_empty() {
        let (lines, rest) = match keys {
            // Control-C and control-D are keys here.
            [b'q' | b'Q' | 3 | 4, ..] => return Some(Action::Quit),
            [0x1b, b'[', b'6', b'~', rest @ ..] | [b' ', rest @ ..] => (PAGE, rest),
            [0x1b, b'[', b'5', b'~', rest @ ..] | [b'b', rest @ ..] => (-PAGE, rest),
            [0x1b, b'[' | b'O', b'B', rest @ ..] | [b'j', rest @ ..] => (1, rest),
            [0x1b, b'[' | b'O', b'A', rest @ ..] | [b'k', rest @ ..] => (-1, rest),
            [0x1b, b'[' | b'O', b'H', rest @ ..] | [b'g', rest @ ..] => {
                (found, scrolled) = (Some(Action::First), 0);
                (0, rest)
            }
            [_, rest @ ..] => (0, rest),
            [] => (0, keys),
        };
        scrolled += lines;
        keys = rest;
    }
    if scrolled == 0 {
        return found;
    }
    Some(Action::Scroll(scrolled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_scroll_and_quit() {
        for (keys, wanted) in [
            (&b"q"[..], Some(Action::Quit)),
            (b"\x03", Some(Action::Quit)),
            (b"jjk\x1b[B", Some(Action::Scroll(2))),
            (b"gq", Some(Action::Quit)),
            (b"\x1b", None),
            (b"j", Some(Action::Scroll(1))),
            (b"\x1b[A", Some(Action::Scroll(-1))),
            (b"\x1bOB", Some(Action::Scroll(1))),
            (b"\x1b[6~", Some(Action::Scroll(PAGE))),
            (b"g", Some(Action::First)),
            (b"x", None),
            (b"\x1b[1;5C", None),
        ] {
            assert_eq!(action_of(keys), wanted, "{keys:?}");
        }
    }
}

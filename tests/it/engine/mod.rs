//! The protocol engine by itself: dialogues with the server's end, and peers of bad will.

mod dialogue;
mod hostile;
mod words;

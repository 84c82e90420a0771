//! A queue with messages whose bytes are damaged.

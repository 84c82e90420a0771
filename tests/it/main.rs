//! Integration tests.
mod engine;

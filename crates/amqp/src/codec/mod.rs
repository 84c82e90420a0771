//! AMQP's encoding of values [AMQP 1.6], read in place and written: the one module that knows constructors and descriptors.
//!
//! A peer's bytes are checked for their shape by [`value_length`] before anything else reads them. After that, the readers of
//! this module copy nothing and allocate nothing: `list` reads the fields of a performative one after the other, [`Encoded`]
//! and `value` read single values. `write` appends values; `list` writes described lists too.
//!
//! Leaves to others: what a value means.

mod constructor;
pub mod descriptor;
mod encoded;
mod list;
mod shape;
pub mod value;
pub mod write;

pub use encoded::{Encoded, Items};
pub(crate) use list::{List, ListWriter, Undecodable};
pub use shape::{Misshapen, value_length};

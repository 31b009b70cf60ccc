//! What clients read. A change of an epoch goes in, a snapshot that never moves comes out.
//!
//! - [`store`]: the rows of a table, view or late table, by key, in immutable chunks
//! - [`contents`]: one epoch's rows, shared with readers without copying

pub mod contents;
pub mod store;

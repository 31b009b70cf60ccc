//! The one thread that moves the database: it admits what sources and sessions bring, logs it, lets the engine apply it,
//! publishes the result and hands checkpoints to their thread.
//!
//! ```text
//! sessions ─┐                ┌─▶ log (durable before visible)
//! sources  ─┼─▶ commands ─▶ control ─▶ engine ─▶ published (readers)
//! clock    ─┘                └─▶ checkpoint thread ─▶ backend
//! ```
//!
//! - [`command`]: what can be asked, and the handle that sessions hold
//! - [`admit`]: commands become an epoch
//! - [`run`]: the loop
//! - [`ddl`]: CREATE and DROP
//! - [`source`]: one thread per connector
//! - [`checkpoint`]: when, and what waits for it
//! - [`facts`]: `hw_catalog` for queries
//! - [`open`]: recovery and replay

pub mod admit;
pub mod checkpoint;
pub mod command;
pub mod ddl;
pub mod facts;
pub mod open;
pub mod run;
pub mod source;

//! What every layer speaks of: changes, times, keys. Depends on nothing of ours but `error`.
//!
//! - [`delta`]: a change, as an Arrow batch with weights
//! - [`time`]: event time, spans, watermarks, the clock
//! - [`key`]: group and row keys as bytes, and the hash that routes them

pub mod delta;
pub mod key;
pub mod time;

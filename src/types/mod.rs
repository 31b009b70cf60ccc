//! What every layer speaks of: changes, times, keys. Depends on nothing of ours but `error`.
//!
//! - [`delta`]: a change, as an Arrow batch with weights
//! - [`time`]: event time, spans, watermarks, the clock
//! - [`key`]: group and row keys as bytes, and the hash that routes them
//! - [`text`]: values as Postgres prints them
//! - [`display`]: columns as the text that Postgres casts them to

pub mod delta;
pub mod display;
pub mod key;
pub mod text;
pub mod time;

/// The key of a field's metadata that names the type clients are told of, where Arrow has none: `json`, `jsonb`.
pub const TYPE_KEY: &str = "highwater.type";

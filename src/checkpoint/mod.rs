//! One consistent cut: the engine's changes since the last one, frozen in between two epochs, written in one atomic commit
//! together with the epoch, the source positions, the watermarks and the counters.
//!
//! 1. [`freeze`]: between two epochs, take what changed; rows are shared, not copied
//! 2. [`freeze::Frozen::encode`]: beside the next epochs, turn it into keys and values
//! 3. `Backend::commit`: atomic and durable
//! 4. [`recover`]: open the last commit, then replay the log above it
//!
//! ```text
//! m/format, m/catalog, m/progress                       the catalog, positions, watermarks, counters
//! s | relation | c | chunk → rows                       a chunk of a table, view or late table
//! s | relation | l | chunk → bits                       which of its rows are live
//! g | view | operator | key group | group key → state   a group of an aggregation
//! ```

pub mod freeze;
pub mod recover;

/// Version of everything below; another one is refused, never guessed.
pub const FORMAT: u32 = 2;

const KEY_FORMAT: &[u8] = b"m/format";
const KEY_CATALOG: &[u8] = b"m/catalog";
const KEY_PROGRESS: &[u8] = b"m/progress";

//! Statement + catalog → a checked plan.
//!
//! - [`context`]: DataFusion set up for us, and names resolved against one epoch
//! - [`provider`]: a relation's rows at an epoch, as DataFusion reads them
//! - [`window_node`]: `FROM TUMBLE(...)` in a DataFusion plan
//! - [`relation`]: CREATE TABLE and STREAM, checked
//! - [`rules`]: the optimizer rules that are sound for continuous queries
//! - [`streaming`]: a continuous query as a tree of operators, or the reason why not
//! - [`shared`]: parts of a query that stand in it more than once
//! - [`ordered_sets`]: `mode` and `percentile_disc`
//! - [`literals`]: string literals read by Postgres' rules
//! - [`functions`]: scalar functions of Postgres
//! - [`operators`]: operators over JSON, intervals and untyped literals
//! - [`typing`]: the types of literals
//! - [`casts`]: casts and arithmetic by Postgres' rules
//! - [`hidden`]: `SELECT *, hw_version`: the star leaves hidden columns out
//! - [`constant`], [`aggregate`], [`join`], [`over`], [`temporal`], [`top_n`], [`unnest`]: the parts of a continuous query by their name
//! - [`node`]: that tree, and how it prints
//! - [`read`]: batch queries and their results

mod aggregate;
mod casts;
mod constant;
pub mod context;
pub mod functions;
pub mod hidden;
mod join;
pub mod literals;
pub mod node;
mod operators;
mod ordered_sets;
mod over;
pub mod provider;
pub mod read;
pub mod relation;
pub mod rules;
mod shared;
pub mod streaming;
mod temporal;
mod top_n;
mod typing;
mod unnest;
pub mod window_node;

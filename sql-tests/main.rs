//! One test binary over the real server: linking DataFusion is slow, so there is one and not ten.
//!
//! - [`run`]: every `.slt` file here, on every state backend
//! - [`flights`]: the known answers of the flights data, in every way they can be asked for
//! - [`crash`]: SIGKILL at random moments loses nothing, doubles nothing, changes no late verdict
//! - [`property`]: a view equals the batch query over the same tables, for random queries and changes
//! - [`hostile`]: bad input gets an error or a side-table row, and the server stays up
//! - [`expressions`]: expressions give what a real PostgreSQL gave
//! - [`manual`]: the examples of the manual do what the manual says
//! - [`nexmark`]: benchmark queries equal the answers of other engines
//! - [`tpch`]: the TPC-H queries as views equal the batch queries, round after round of changes
//! - [`tidy`]: the source keeps its own rules

// Tests start processes and wait for them; what must not depend on time is the server.
#![allow(clippy::disallowed_methods)]

mod crash;
mod expressions;
mod flights;
mod hostile;
mod inside;
mod manual;
mod nexmark;
mod property;
mod run;
mod server;
mod tidy;
mod tpch;

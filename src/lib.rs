//! Highwater: a streaming SQL database that speaks the Postgres protocol.
//!
//! The life of a row:
//! 1. it arrives over the wire ([`wire`], [`session`]) or from a connector ([`connect`])
//! 2. the control thread admits it to the next epoch and logs it ([`control`], [`log`])
//! 3. it gets the watermark that stood before it ([`flow::time`])
//! 4. it goes through every view that reads its relation ([`flow`]), operator by operator ([`operator`], [`window`])
//! 5. what changed is applied to the rows that clients read ([`view`]), and all views move to the epoch at once
//! 6. what operators remember is written down beside the next epochs ([`checkpoint`], [`state`])
//!
//! Around it: text becomes statements in [`sql`], statements become plans in [`plan`], names are kept in [`catalog`].

#![warn(missing_docs)]

// The data's order, lowest layer first; a test holds `use crate::` to it.
pub mod error;
pub mod types;

pub mod connect;
pub mod log;
pub mod sql;
pub mod state;
pub mod window;

pub mod catalog;
pub mod operator;
pub mod view;

pub mod checkpoint;
pub mod flow;
pub mod plan;

pub mod config;
pub mod control;
pub mod server;
pub mod session;
pub mod wire;

//! What can be asked of the control thread.

use std::sync::Arc;

use arrow::array::RecordBatch;
use tokio::sync::{mpsc, oneshot};

use crate::catalog::ObjectId;
use crate::catalog::facts::Facts;
use crate::connect::Polled;
use crate::error::{Error, Kind, Result};
use crate::sql::statement::Drop;
use crate::types::delta::Delta;

/// Commands that wait at most. A sender beyond that waits: the queue is bounded, nothing is dropped.
pub const COMMANDS_MAX: usize = 1_024;

/// Where an answer goes.
pub type Reply<T> = oneshot::Sender<Result<T>>;

/// One thing to do.
#[derive(Debug)]
pub enum Command {
    /// Changes of one transaction: visible together, in one epoch.
    Write {
        /// By relation, in order.
        changes: Vec<(ObjectId, Change)>,
        /// Answer when durable; else when visible.
        durable: bool,
        /// The epoch.
        reply: Reply<u64>,
    },
    /// What a connector brought.
    Source {
        /// Its relation.
        relation: ObjectId,
        /// Rows, nothing, or the end; or why it cannot go on.
        polled: Result<Polled>,
    },
    /// CREATE.
    Create {
        /// The statement.
        text: String,
        /// True if it names a late table.
        late: bool,
        /// Done: all rows that were there are in it.
        reply: Reply<()>,
    },
    /// DROP.
    Drop {
        /// What.
        drop: Drop,
        /// Notices about what was not there, or went along.
        reply: Reply<Vec<String>>,
    },
    /// Answer when everything before is visible, and bounded sources have been read.
    Flush {
        /// The epoch.
        reply: Reply<u64>,
    },
    /// Answer when everything visible so far is restorable.
    Checkpoint {
        /// The epoch.
        reply: Reply<u64>,
    },
    /// What the engine knows about itself.
    Facts {
        /// The facts.
        reply: Reply<Box<Facts>>,
    },
    /// The checkpoint thread is done.
    CheckpointDone(Box<super::checkpoint::Done>),
    /// Make a last checkpoint and stop.
    Shutdown {
        /// Stopped.
        reply: Reply<()>,
    },
}

/// A change of one relation.
#[derive(Debug)]
pub enum Change {
    /// New rows; visible columns in order.
    Insert(RecordBatch),
    /// Rows to delete and insert, with all columns.
    Replace(Delta),
}

/// The way to the control thread. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    sender: mpsc::Sender<Command>,
}

impl Handle {
    /// A handle, and the end that the control thread reads.
    pub fn new() -> (Handle, mpsc::Receiver<Command>) {
        let (sender, receiver) = mpsc::channel(COMMANDS_MAX);
        (Handle { sender }, receiver)
    }

    /// Changes relations in one epoch; returns it.
    pub async fn write(&self, changes: Vec<(ObjectId, Change)>, durable: bool) -> Result<u64> {
        self.ask(|reply| Command::Write { changes, durable, reply }).await
    }

    /// Creates what the statement says.
    pub async fn create(&self, text: String, late: bool) -> Result<()> {
        self.ask(|reply| Command::Create { text, late, reply }).await
    }

    /// Drops objects; returns notices.
    pub async fn drop_objects(&self, drop: Drop) -> Result<Vec<String>> {
        self.ask(|reply| Command::Drop { drop, reply }).await
    }

    /// Waits until everything before is visible.
    pub async fn flush(&self) -> Result<u64> {
        self.ask(|reply| Command::Flush { reply }).await
    }

    /// Waits until everything visible so far is restorable.
    pub async fn checkpoint(&self) -> Result<u64> {
        self.ask(|reply| Command::Checkpoint { reply }).await
    }

    /// What the engine knows about itself.
    pub async fn facts(&self) -> Result<Arc<Facts>> {
        Ok(Arc::from(self.ask(|reply| Command::Facts { reply }).await?))
    }

    /// Makes a last checkpoint and stops the thread.
    pub async fn shutdown(&self) -> Result<()> {
        self.ask(|reply| Command::Shutdown { reply }).await
    }

    /// For threads that are not async; false when the control thread is gone.
    pub fn send_blocking(&self, command: Command) -> bool {
        self.sender.blocking_send(command).is_ok()
    }

    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T> {
        let gone = || Error::new(Kind::Shutdown, "the server is shutting down");
        let (reply, answer) = oneshot::channel();
        self.sender.send(command(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

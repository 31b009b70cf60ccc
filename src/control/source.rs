//! One thread per connector: polls it, sends what it brings, and waits when the engine is behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use super::command::{Command, Handle};
use crate::catalog::ObjectId;
use crate::connect::{Polled, Source};
use crate::error::Result;

/// Rows asked of a source at a time.
const POLL_ROWS: usize = 65_536;

/// Batches that a source may be ahead of the engine.
const AHEAD_MAX: usize = 4;

/// How long a source that had nothing is left alone.
const QUIET: Duration = Duration::from_millis(20);

/// The control thread's end of a source.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
    credits: Receiver<()>,
    /// Polls that found nothing, so far: FLUSH waits for two more.
    pub quiet: u64,
    /// It will bring nothing more.
    pub ended: bool,
    /// It brings rows for ever, so that nobody can wait for its end.
    pub endless: bool,
}

impl Running {
    /// The engine has taken a batch; the source may bring another.
    pub fn taken(&self) {
        let _ = self.credits.try_recv();
    }

    /// Asks the thread to stop; it does before its next poll.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        while self.credits.try_recv().is_ok() {}
    }
}

/// Starts the thread of a source.
#[expect(clippy::disallowed_methods, reason = "one thread per connector is this module's purpose")]
pub fn start(
    relation: ObjectId,
    name: &str,
    source: Box<dyn Source>,
    endless: bool,
    handle: Handle,
) -> Result<Running> {
    let (credit, credits) = sync_channel(AHEAD_MAX);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let spawned = std::thread::Builder::new()
        .name(format!("source {name}"))
        .spawn(move || poll(relation, source, &handle, &credit, &stopped));
    spawned.map_err(|error| crate::error::Error::io("starting a source's thread", &error))?;
    Ok(Running { stop, credits, quiet: 0, ended: false, endless })
}

fn poll(relation: ObjectId, mut source: Box<dyn Source>, handle: &Handle, credit: &SyncSender<()>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let polled = source.poll(POLL_ROWS);
        let (last, quiet) = (matches!(polled, Ok(Polled::End) | Err(_)), matches!(polled, Ok(Polled::Quiet)));
        // Waits here when the engine is `AHEAD_MAX` batches behind; the receiver is gone when the server stops.
        if !quiet && credit.send(()).is_err() {
            return;
        }
        if !handle.send_blocking(Command::Source { relation, polled }) || last {
            return;
        }
        if quiet {
            std::thread::park_timeout(QUIET);
        }
    }
}

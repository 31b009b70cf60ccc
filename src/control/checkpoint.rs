//! When a checkpoint is made, and the thread that encodes and commits it beside the next epochs. One at a time: while one
//! commits, the next grows.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::command::{Command, Handle};
use crate::catalog::facts::CheckpointFacts;
use crate::checkpoint::freeze::Frozen;
use crate::error::{Error, Result};
use crate::state::Backend;
use crate::types::time::{EventTime, Stopwatch};

/// A frozen cut on its way to the backend.
#[derive(Debug)]
pub struct Job {
    /// The epoch it makes restorable.
    pub epoch: u64,
    /// The clock when it was frozen.
    pub started_at: EventTime,
    /// Microseconds that the engine paused.
    pub freeze_us: u64,
    /// What to write.
    pub frozen: Frozen,
}

/// A checkpoint that was committed, or was not.
#[derive(Debug)]
pub struct Done {
    /// Its facts.
    pub facts: CheckpointFacts,
    /// Why it failed.
    pub outcome: Result<()>,
}

/// Starts the thread; jobs go in, [`Command::CheckpointDone`] comes out.
#[expect(clippy::disallowed_methods, reason = "the checkpoint thread is this module's purpose")]
pub fn start(backend: Arc<dyn Backend>, handle: Handle) -> Result<Worker> {
    let (jobs, receiver) = channel();
    let spawned =
        std::thread::Builder::new().name("checkpoint".into()).spawn(move || work(&receiver, backend.as_ref(), &handle));
    let thread = spawned.map_err(|error| Error::io("starting the checkpoint thread", &error))?;
    Ok(Worker { jobs, thread })
}

/// The checkpoint thread, as the control thread holds it.
#[derive(Debug)]
pub struct Worker {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Hands a job over; false if the thread is gone.
    pub fn hand_over(&self, job: Job) -> bool {
        self.jobs.send(job).is_ok()
    }

    /// Waits until the jobs are done and the backend is closed.
    pub fn finish(self) -> Result<()> {
        drop(self.jobs);
        self.thread.join().map_err(|_| Error::internal("the checkpoint thread panicked"))
    }
}

fn work(jobs: &Receiver<Job>, backend: &dyn Backend, handle: &Handle) {
    while let Ok(job) = jobs.recv() {
        let done = commit(job, backend);
        match &done.outcome {
            Ok(()) => tracing::debug!(epoch = done.facts.epoch, bytes = done.facts.bytes, "checkpoint finished"),
            Err(error) => {
                tracing::error!(epoch = done.facts.epoch, %error, "checkpoint failed; the last one still holds")
            }
        }
        // Nobody listens any more when the server stops; the jobs that are left are still committed.
        handle.send_blocking(Command::CheckpointDone(Box::new(done)));
    }
}

/// Encodes and commits one cut.
pub fn commit(job: Job, backend: &dyn Backend) -> Done {
    let watch = Stopwatch::start();
    let mut facts = CheckpointFacts {
        epoch: job.epoch,
        started_at: job.started_at,
        freeze_us: job.freeze_us,
        encode_us: 0,
        write_us: 0,
        sync_us: 0,
        entries: 0,
        bytes: 0,
        error: None,
    };
    let outcome = job.frozen.encode().and_then(|batch| {
        facts.encode_us = watch.elapsed_us();
        facts.entries = (batch.puts.len() + batch.removes.len()) as u64;
        let stats = backend.commit(job.epoch, &batch)?;
        (facts.bytes, facts.write_us, facts.sync_us) = (stats.bytes, stats.write_us, stats.sync_us);
        Ok(())
    });
    facts.error = outcome.as_ref().err().map(ToString::to_string);
    Done { facts, outcome }
}

//! One connection after startup: read a message, answer it, until the client leaves.
//!
//! An error ends the statement, fails the transaction, and is followed by ReadyForQuery in the simple protocol; in the
//! extended protocol, messages are skipped until Sync, which answers ReadyForQuery.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pgwire::messages::response::{ErrorResponse, ReadyForQuery, TransactionStatus};
use tokio::sync::watch;

use super::error::{self, Failure, Report};
use super::extended::{Portal, Statement};
use super::frame::{Frame, Reader, Writer};
use super::message::{self, Message};
use crate::session::Session;

/// How long a statement that writes may go on after shutdown began. Streams of rows end at once.
const STATEMENT_GRACE: Duration = Duration::from_secs(5);

/// A client and its session.
pub(super) struct Connection<'a> {
    pub(super) reader: &'a mut Reader,
    pub(super) writer: &'a mut Writer,
    pub(super) interrupts: Interrupts,
    pub(super) session: Arc<Session>,
    /// What ReadyForQuery reports.
    pub(super) status: TransactionStatus,
    /// Prepared statements by name.
    pub(super) statements: HashMap<String, Arc<Statement>>,
    /// Portals by name. They end with their transaction.
    pub(super) portals: HashMap<String, Portal>,
    /// The settings that the client was told last.
    pub(super) reported: Vec<(String, String)>,
    /// After an error in the extended protocol, until Sync.
    skipping: bool,
}

impl<'a> Connection<'a> {
    /// A connection whose client was just welcomed.
    pub(super) fn new(
        reader: &'a mut Reader,
        writer: &'a mut Writer,
        interrupts: Interrupts,
        session: Arc<Session>,
    ) -> Self {
        let reported = session.parameter_statuses();
        Connection {
            reader,
            writer,
            interrupts,
            session,
            status: TransactionStatus::Idle,
            statements: HashMap::new(),
            portals: HashMap::new(),
            reported,
            skipping: false,
        }
    }

    /// Answers messages until the client leaves.
    pub(super) async fn run(mut self) -> Result<(), Failure> {
        self.writer.flush().await?;
        while let Some(frame) = self.interrupts.idle(self.reader.frame()).await? {
            let kind = frame.kind;
            if kind == Message::TERMINATE {
                return Ok(());
            }
            if self.skipping && kind != Message::SYNC {
                continue;
            }
            self.interrupts.forget();
            match self.answer(frame).await {
                Ok(()) => {}
                Err(Failure::Error(report)) => self.fail(&report, message::is_extended(kind)).await?,
                Err(other) => return Err(other),
            }
            if self.writer.is_full() {
                self.writer.flush().await?;
            }
        }
        Ok(())
    }

    async fn answer(&mut self, frame: Frame) -> Result<(), Failure> {
        match Message::decode(frame)? {
            Message::Query(text) => {
                self.query(&text).await?;
                self.ready().await
            }
            Message::Parse(parse) => self.parse(parse).await,
            Message::Bind(bind) => self.bind(bind),
            Message::Describe(target) => self.describe(&target),
            Message::Execute { portal, rows_max } => self.execute(&portal, rows_max).await,
            Message::Close(target) => {
                self.close(&target);
                Ok(())
            }
            Message::Flush => Ok(self.writer.flush().await?),
            Message::Sync => {
                self.skipping = false;
                self.ready().await
            }
            // The rest of a COPY that failed: the client learns of it while it is still sending.
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => Ok(()),
            Message::Terminate => unreachable!("handled where frames are read"),
        }
    }

    /// Says that the next statement may come.
    async fn ready(&mut self) -> Result<(), Failure> {
        if self.status != TransactionStatus::Transaction {
            self.portals.clear();
        }
        self.writer.send(ReadyForQuery::new(self.status));
        Ok(self.writer.flush().await?)
    }

    async fn fail(&mut self, report: &Report, extended: bool) -> Result<(), Failure> {
        self.session.fail_transaction();
        // The session knows best: a failed COMMIT, for one, leaves no transaction behind.
        self.status = match self.session.in_failed_transaction() {
            true => TransactionStatus::Error,
            false => TransactionStatus::Idle,
        };
        self.portals.clear();
        self.send_notices();
        let response: ErrorResponse = report.response("ERROR");
        self.writer.send(response);
        if extended {
            self.skipping = true;
            return Ok(self.writer.flush().await?);
        }
        self.ready().await
    }

    /// Notices go before the answer they belong to.
    pub(super) fn send_notices(&mut self) {
        for notice in self.session.take_notices() {
            self.writer.send(error::notice(&notice));
        }
    }
}

/// What may end a statement from outside: a cancel request, or the server's shutdown.
pub(super) struct Interrupts {
    cancel: watch::Receiver<()>,
    shutdown: watch::Receiver<bool>,
}

impl Interrupts {
    /// Heeds these two.
    pub(super) fn new(cancel: watch::Receiver<()>, shutdown: watch::Receiver<bool>) -> Self {
        Interrupts { cancel, shutdown }
    }

    /// A cancel request that came between messages has nothing to cancel.
    fn forget(&mut self) {
        self.cancel.mark_unchanged();
    }

    /// Waits for a message; only shutdown ends that.
    async fn idle<T>(&mut self, message: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            _ = self.shutdown.wait_for(|stop| *stop) => Err(error::shutting_down()),
            message = message => message,
        }
    }

    /// Runs a statement that may write: when the server shuts down, it gets some time to end.
    pub(super) async fn statement<T, E: Into<Failure>>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure> {
        let mut work = pin!(work);
        if let Some(result) = self.unless_stopped(work.as_mut()).await {
            return result;
        }
        match tokio::time::timeout(STATEMENT_GRACE, work).await {
            Ok(result) => result.map_err(Into::into),
            Err(_) => Err(error::shutting_down()),
        }
    }

    /// Waits for the next rows, for the client to take them, or for its COPY data. Ends with the server.
    pub(super) async fn stream<T, E: Into<Failure>>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure> {
        self.unless_stopped(work).await.unwrap_or_else(|| Err(error::shutting_down()))
    }

    /// The work's result; an error if the client cancels it; `None` if the server shuts down before it is done. Looks at
    /// the interrupts first: work that is always ready must not hide them.
    async fn unless_stopped<T, E: Into<Failure>>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Option<Result<T, Failure>> {
        tokio::select! {
            biased;
            Ok(()) = self.cancel.changed() => Some(Err(error::cancelled())),
            // An error means that whoever could ask for shutdown is gone, which is shutdown as well.
            _ = self.shutdown.wait_for(|stop| *stop) => None,
            result = work => Some(result.map_err(Into::into)),
        }
    }
}

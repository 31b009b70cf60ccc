//! Postgres clients <-> sessions: bytes come in and become calls of a [`Session`](crate::session::Session); what it answers becomes
//! bytes. The only place that knows pgwire.
//!
//! The life of a connection:
//! 1. [`serve`] takes it, within bounds, and gives it a task of its own
//! 2. [`startup`] agrees on the protocol, or hands a cancel request to [`cancel`]
//! 3. [`connection`] reads messages ([`frame`] bounds them, [`message`] decodes them) and answers each
//! 4. [`simple`] runs the statements of a query text; [`extended`] keeps prepared statements and portals, with parameters
//!    from [`parameter`]
//! 5. [`answer`] says what came of a statement, [`rows`] streams its result through [`encode`], [`copy`] takes bulk input
//!
//! We use pgwire's messages and types but not its handlers: those collect all rows of a portal before sending the first,
//! cannot cancel while rows are streamed, and their decoders panic on truncated messages.

use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};

use crate::error::{Error, Kind, Result};
use crate::server::Server;
use cancel::Cancels;
use connection::{Connection, Interrupts};
use error::{Failure, Report, SQLSTATE_TOO_MANY_CONNECTIONS};
use frame::{Reader, Writer};
use startup::Opening;

mod answer;
mod array;
mod cancel;
mod connection;
mod copy;
mod encode;
mod error;
mod extended;
mod frame;
mod message;
mod numeric;
mod parameter;
mod rows;
mod simple;
mod startup;
mod types;

/// Sessions at a time.
const CONNECTIONS_MAX: usize = 1_000;

/// Sockets at a time: sessions, and clients that are still introducing themselves, who cancel, or who are about to be
/// told that there is no session left.
const SOCKETS_MAX: usize = CONNECTIONS_MAX + 100;

/// How long a client may take from connecting to its complete startup packet.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// How long connections may take to end after shutdown; then their tasks are dropped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait after a failed accept: the usual reason, no file descriptor left, does not go away at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until shutdown, then waits for the open ones to end.
pub async fn serve(listener: TcpListener, server: Arc<Server>, mut shutdown: watch::Receiver<bool>) -> Result<()> {
    let door = Arc::new(Door {
        server,
        cancels: Arc::new(Cancels::default()),
        seats: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        shutdown: shutdown.clone(),
    });
    let sockets = Arc::new(Semaphore::new(SOCKETS_MAX));
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = shutdown.wait_for(|stop| *stop) => break,
            () = next_end(&mut tasks) => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            // Beyond this bound there is no room even to say so; dropping the socket closes it.
            Ok((socket, peer)) => match Arc::clone(&sockets).try_acquire_owned() {
                Ok(place) => {
                    tasks.spawn(Arc::clone(&door).receive(socket, peer, place));
                }
                Err(_) => tracing::warn!(%peer, sockets = SOCKETS_MAX, "connection dropped, too many sockets"),
            },
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                // A connection that ends gives its descriptor back. The bound is for descriptors that others give back.
                let _ = tokio::time::timeout(ACCEPT_PAUSE, next_end(&mut tasks)).await;
            }
        }
    }
    drop(listener);
    let ended = async {
        while let Some(ended) = tasks.join_next().await {
            log_end(ended);
        }
    };
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await.is_err() {
        tracing::warn!(connections = tasks.len(), "connections did not end in time and are dropped");
        tasks.shutdown().await;
    }
    Ok(())
}

/// Waits for a connection to end; forever if there is none.
async fn next_end(tasks: &mut JoinSet<()>) {
    match tasks.join_next().await {
        Some(ended) => log_end(ended),
        None => std::future::pending().await,
    }
}

fn log_end(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection task panicked");
    }
}

/// What all connections share.
struct Door {
    server: Arc<Server>,
    cancels: Arc<Cancels>,
    /// One permit per session.
    seats: Arc<Semaphore>,
    shutdown: watch::Receiver<bool>,
}

impl Door {
    /// Serves one socket to its end. Never panics: a panic inside ends this connection alone.
    async fn receive(self: Arc<Self>, socket: TcpStream, peer: SocketAddr, _place: OwnedSemaphorePermit) {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%peer, %error, "connection lost before its start");
            return;
        }
        let (read, write) = socket.into_split();
        let (mut reader, mut writer) = (Reader::new(read), Writer::new(write));
        let conversation = AssertUnwindSafe(self.converse(&mut reader, &mut writer, peer));
        let report = match conversation.catch_unwind().await {
            Ok(Ok(())) | Ok(Err(Failure::Gone)) => return,
            Ok(Err(Failure::Error(report) | Failure::Fatal(report))) => report,
            Err(_) => {
                tracing::error!(%peer, "a statement panicked, its connection is closed");
                // What is unsent may end in half a message.
                writer.discard();
                Report::from(
                    Error::internal("the statement failed because of a bug in Highwater")
                        .hint("The server's log has more."),
                )
            }
        };
        tracing::debug!(%peer, sqlstate = report.sqlstate, message = report.message, "connection closed with an error");
        if let Err(error) = say_goodbye(&mut reader, &mut writer, &report).await {
            tracing::debug!(%peer, %error, "client left before its last message");
        }
    }

    async fn converse(&self, reader: &mut Reader, writer: &mut Writer, peer: SocketAddr) -> Result<(), Failure> {
        let mut shutdown = self.shutdown.clone();
        let opening = tokio::select! {
            opening = tokio::time::timeout(STARTUP_TIMEOUT, startup::open(reader, writer)) => match opening {
                Ok(opening) => opening?,
                Err(_) => return Err(Failure::Fatal(Report::from(Error::new(Kind::Protocol, "no startup packet within 30 seconds")))),
            },
            _ = shutdown.wait_for(|stop| *stop) => return Err(error::shutting_down()),
        };
        let info = match opening {
            Opening::Session(info) => info,
            Opening::Cancel { process, secret } => {
                self.cancels.cancel(process, secret);
                return Ok(());
            }
            Opening::Closed => return Ok(()),
        };
        let Ok(_seat) = Arc::clone(&self.seats).try_acquire_owned() else {
            let message = format!("there are {CONNECTIONS_MAX} connections already");
            return Err(Failure::Fatal(Report::new(SQLSTATE_TOO_MANY_CONNECTIONS, message)));
        };
        let session = self.server.connect(info).map_err(|error| Failure::Fatal(Report::from(error)))?;
        let registration = self.cancels.register(peer);
        startup::welcome(writer, &session, &registration)?;
        let interrupts = Interrupts::new(registration.requests(), shutdown);
        Connection::new(reader, writer, interrupts, session).run().await
    }
}

/// Sends the error that ends the connection. What the client is still sending is read and dropped: closing a socket with
/// unread input would reset it, and the client might never see the error.
async fn say_goodbye(reader: &mut Reader, writer: &mut Writer, report: &Report) -> io::Result<()> {
    writer.send(report.response("FATAL"));
    writer.flush().await?;
    reader.discard_refused().await;
    writer.close().await?;
    reader.discard_rest().await;
    Ok(())
}

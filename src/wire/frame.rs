//! The socket's two directions. Inbound bytes are cut into frames (a type byte, a length, a body); outbound messages are
//! collected in a buffer and written together.
//!
//! A claimed length is checked before it is believed, and memory grows with the bytes that arrived, never with the claim.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pgwire::messages::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::error::{Failure, Report};
use crate::error::{Error, Kind};

/// Bytes of one message at most, its length field included.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// A longer claim is not a large message but garbage, as in Postgres.
const CLAIM_BYTES_MAX: usize = 0x3fff_ffff;

/// Bytes of a startup packet at most, as in Postgres.
const STARTUP_BYTES_MAX: usize = 10_000;

/// Room for one read.
const READ_BYTES: usize = 16 << 10;

/// Input that is read ahead while a statement streams rows, to notice that the client has gone.
const READ_AHEAD_BYTES_MAX: usize = 64 << 10;

/// Collected output that is worth a write.
pub(super) const WRITE_BYTES: usize = 64 << 10;

/// How long a client may take to finish sending a message that was refused for its size.
const REFUSED_TIMEOUT: Duration = Duration::from_secs(30);

/// How long we wait for a client to close its side after an error that ends the connection.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// One message, still as bytes.
#[derive(Debug)]
pub(super) struct Frame {
    /// Says which message it is.
    pub(super) kind: u8,
    /// What follows the length.
    pub(super) body: Bytes,
}

/// The inbound direction. Dropping a future of its methods loses no bytes.
#[derive(Debug)]
pub(super) struct Reader {
    socket: OwnedReadHalf,
    buffer: BytesMut,
    /// Bytes of a refused message that are still to come.
    refused: usize,
}

impl Reader {
    /// Reads from this socket.
    pub(super) fn new(socket: OwnedReadHalf) -> Self {
        Reader { socket, buffer: BytesMut::with_capacity(READ_BYTES), refused: 0 }
    }

    /// The next frame; `None` if the client closed between two.
    pub(super) async fn frame(&mut self) -> Result<Option<Frame>, Failure> {
        if !self.fill(5).await? {
            return if self.buffer.is_empty() { Ok(None) } else { Err(Failure::Gone) };
        }
        let kind = self.buffer[0];
        if !kind.is_ascii_alphabetic() {
            return Err(Failure::protocol(format!("invalid frontend message type {kind}")));
        }
        let length = self.length(1);
        if !(4..=CLAIM_BYTES_MAX).contains(&length) {
            return Err(Failure::protocol("invalid message length"));
        }
        if length > MESSAGE_BYTES_MAX {
            return Err(self.refuse(1 + length));
        }
        if !self.fill(1 + length).await? {
            return Err(Failure::Gone);
        }
        let body = self.buffer.split_to(1 + length).freeze().slice(5..);
        Ok(Some(Frame { kind, body }))
    }

    /// A packet of the startup phase, which has no type byte; `None` if the client closed before it.
    pub(super) async fn startup_packet(&mut self) -> Result<Option<Bytes>, Failure> {
        if !self.fill(4).await? {
            return if self.buffer.is_empty() { Ok(None) } else { Err(Failure::Gone) };
        }
        let length = self.length(0);
        if !(8..=STARTUP_BYTES_MAX).contains(&length) {
            return Err(Failure::protocol("invalid length of startup packet"));
        }
        if !self.fill(length).await? {
            return Err(Failure::Gone);
        }
        Ok(Some(self.buffer.split_to(length).freeze().slice(4..)))
    }

    /// Returns when the client has closed its side. What it sends until then is kept for later.
    pub(super) async fn hang_up(&mut self) {
        while self.buffer.len() < READ_AHEAD_BYTES_MAX {
            if !self.read().await.unwrap_or(false) {
                return;
            }
        }
        // Beyond the bound we cannot know. The next write will tell.
        std::future::pending().await
    }

    /// Reads and drops the rest of a refused message, if there is one.
    pub(super) async fn discard_refused(&mut self) {
        let expected = self.refused.saturating_sub(self.buffer.len());
        self.buffer = BytesMut::with_capacity(READ_BYTES);
        // It may time out or find the client gone; in both cases we close.
        let _ = tokio::time::timeout(REFUSED_TIMEOUT, self.discard(expected)).await;
    }

    /// Reads and drops what still comes, for a moment or until the client closes its side.
    pub(super) async fn discard_rest(&mut self) {
        let _ = tokio::time::timeout(GOODBYE_TIMEOUT, self.discard(MESSAGE_BYTES_MAX)).await;
    }

    async fn discard(&mut self, mut bytes: usize) {
        while bytes > 0 && self.read().await.unwrap_or(false) {
            bytes = bytes.saturating_sub(self.buffer.len());
            self.buffer.clear();
        }
    }

    fn refuse(&mut self, bytes: usize) -> Failure {
        self.refused = bytes;
        let message = format!("a message of {bytes} bytes is too large");
        let error = Error::new(Kind::ProgramLimit, message)
            .detail(format!("A message has at most {MESSAGE_BYTES_MAX} bytes."))
            .hint("Send large input with COPY FROM STDIN, which has no such limit.");
        Failure::Fatal(Report::from(error))
    }

    /// The length field at this offset; a negative one becomes huge, and is refused like that.
    fn length(&self, offset: usize) -> usize {
        let field = self.buffer[offset..offset + 4].try_into().expect("four bytes");
        u32::from_be_bytes(field) as usize
    }

    /// Reads until that many bytes are there; false if the client closed before.
    async fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        while self.buffer.len() < bytes {
            if !self.read().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn read(&mut self) -> io::Result<bool> {
        self.buffer.reserve(READ_BYTES);
        Ok(self.socket.read_buf(&mut self.buffer).await? > 0)
    }
}

/// The outbound direction.
#[derive(Debug)]
pub(super) struct Writer {
    socket: OwnedWriteHalf,
    buffer: BytesMut,
}

impl Writer {
    /// Writes to this socket.
    pub(super) fn new(socket: OwnedWriteHalf) -> Self {
        Writer { socket, buffer: BytesMut::new() }
    }

    /// Adds a message to what is written next.
    pub(super) fn send(&mut self, message: impl Message) {
        let complete = self.buffer.len();
        if let Err(error) = message.encode(&mut self.buffer) {
            // Only a tag, setting or COPY header of more than 30 kB gets here; clients would refuse it as well.
            tracing::error!(%error, "a message to a client was dropped");
            self.buffer.truncate(complete);
        }
    }

    /// Where rows are encoded: whole messages only.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// True if the buffer is worth a write.
    pub(super) fn is_full(&self) -> bool {
        self.buffer.len() >= WRITE_BYTES
    }

    /// Writes what was collected. Dropping the future loses no bytes.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all_buf(&mut self.buffer).await
    }

    /// Drops what was collected.
    pub(super) fn discard(&mut self) {
        self.buffer.clear();
    }

    /// Tells the client that nothing more comes.
    pub(super) async fn close(&mut self) -> io::Result<()> {
        self.socket.shutdown().await
    }
}

//! Frames -> messages. Every count and length inside a body is checked against what is there.

use bytes::{Buf, Bytes, TryGetError};

use super::error::{Failure, SQLSTATE_BAD_ENCODING};
use super::frame::Frame;
use crate::error::Error;

/// What a client can say after startup.
#[derive(Debug)]
pub(super) enum Message {
    /// Run these statements (simple protocol).
    Query(String),
    /// Prepare a statement.
    Parse(Parse),
    /// Make a portal of a prepared statement.
    Bind(Bind),
    /// Tell the columns, and for a statement its parameters.
    Describe(Target),
    /// Forget it.
    Close(Target),
    /// Run a portal, or take more rows from it.
    Execute {
        /// Empty for the unnamed one.
        portal: String,
        /// All if absent.
        rows_max: Option<usize>,
    },
    /// Send what there is.
    Flush,
    /// The end of a sequence of extended messages.
    Sync,
    /// A piece of COPY input.
    CopyData(Bytes),
    /// The COPY input is complete.
    CopyDone,
    /// The client gives up its COPY, for this reason.
    CopyFail(String),
    /// The client leaves.
    Terminate,
}

/// A statement to prepare.
#[derive(Debug)]
pub(super) struct Parse {
    /// Empty for the unnamed one.
    pub(super) statement: String,
    /// SQL.
    pub(super) text: String,
    /// Type of each parameter as far as the client knows it; 0 where it does not.
    pub(super) oids: Vec<u32>,
}

/// Values for the parameters of a prepared statement.
#[derive(Debug)]
pub(super) struct Bind {
    /// Empty for the unnamed one.
    pub(super) portal: String,
    /// Empty for the unnamed one.
    pub(super) statement: String,
    /// None, one for all, or one for each parameter.
    pub(super) parameter_formats: Vec<i16>,
    /// `None` is NULL.
    pub(super) parameters: Vec<Option<Bytes>>,
    /// None, one for all, or one for each column.
    pub(super) result_formats: Vec<i16>,
}

/// What Describe and Close speak of.
#[derive(Debug)]
pub(super) enum Target {
    /// A prepared statement of this name.
    Statement(String),
    /// A portal of this name.
    Portal(String),
}

/// True for messages after which an error makes the server skip everything up to Sync.
pub(super) fn is_extended(kind: u8) -> bool {
    matches!(kind, b'P' | b'B' | b'D' | b'C' | b'E' | b'H' | b'S')
}

impl Message {
    /// Sync's frame ends skipping.
    pub(super) const SYNC: u8 = b'S';
    /// Terminate's frame is heeded even while skipping.
    pub(super) const TERMINATE: u8 = b'X';

    /// Decodes a frame.
    pub(super) fn decode(frame: Frame) -> Result<Self, Failure> {
        let mut body = Body(frame.body);
        let message = match frame.kind {
            b'Q' => Message::Query(body.string()?),
            b'P' => Message::Parse(Parse {
                statement: body.string()?,
                text: body.string()?,
                oids: body.list(|body| Ok(body.0.try_get_u32()?))?,
            }),
            b'B' => Message::Bind(Bind {
                portal: body.string()?,
                statement: body.string()?,
                parameter_formats: body.list(|body| Ok(body.0.try_get_i16()?))?,
                parameters: body.list(Body::value)?,
                result_formats: body.list(|body| Ok(body.0.try_get_i16()?))?,
            }),
            b'D' => Message::Describe(body.target()?),
            b'C' => Message::Close(body.target()?),
            b'E' => {
                let portal = body.string()?;
                let rows_max = body.0.try_get_i32()?;
                Message::Execute { portal, rows_max: usize::try_from(rows_max).ok().filter(|rows| *rows > 0) }
            }
            b'H' => Message::Flush,
            b'S' => Message::Sync,
            b'd' => Message::CopyData(std::mem::take(&mut body.0)),
            b'c' => Message::CopyDone,
            b'f' => Message::CopyFail(body.string()?),
            b'X' => Message::Terminate,
            b'F' => {
                return Err(Error::unsupported("function call messages are not supported").hint("Use SELECT.").into());
            }
            other => return Err(Failure::protocol(format!("invalid frontend message type {other}"))),
        };
        if body.0.has_remaining() {
            return Err(Failure::protocol("message has more data than its contents"));
        }
        Ok(message)
    }
}

/// A message's bytes, read from the front. Also used for startup packets.
pub(super) struct Body(pub(super) Bytes);

impl Body {
    /// A string, which ends at a zero byte.
    pub(super) fn string(&mut self) -> Result<String, Failure> {
        let length = self.0.iter().position(|byte| *byte == 0).ok_or_else(truncated)?;
        let bytes = self.0.split_to(length);
        self.0.advance(1);
        utf8(&bytes).map(str::to_string)
    }

    /// A count in two bytes, then that many elements.
    fn list<T>(&mut self, element: impl Fn(&mut Body) -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
        let count = self.0.try_get_u16()?;
        // Grows with what is there, not with the count.
        (0..count).map(|_| element(self)).collect()
    }

    /// A parameter: its length, or -1 for NULL, and its bytes.
    fn value(&mut self) -> Result<Option<Bytes>, Failure> {
        match usize::try_from(self.0.try_get_i32()?) {
            Err(_) => Ok(None),
            Ok(length) if length > self.0.len() => Err(truncated()),
            Ok(length) => Ok(Some(self.0.split_to(length))),
        }
    }

    fn target(&mut self) -> Result<Target, Failure> {
        match self.0.try_get_u8()? {
            b'S' => Ok(Target::Statement(self.string()?)),
            b'P' => Ok(Target::Portal(self.string()?)),
            other => Err(Failure::protocol(format!("neither a statement nor a portal: {other}"))),
        }
    }
}

/// Text that a client sent.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|error| {
        let rest = &bytes[error.valid_up_to()..];
        let shown: Vec<String> = rest.iter().take(4).map(|byte| format!("0x{byte:02x}")).collect();
        Failure::new(SQLSTATE_BAD_ENCODING, format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")))
    })
}

fn truncated() -> Failure {
    Failure::protocol("insufficient data left in message")
}

impl From<TryGetError> for Failure {
    fn from(_: TryGetError) -> Self {
        truncated()
    }
}

//! What goes wrong on a connection, and how the client is told.

use std::io;

use pgwire::messages::response::{ErrorResponse, NoticeResponse};

use crate::error::{Error, Kind};
use crate::session::outcome::Notice;

/// No session left.
pub(super) const SQLSTATE_TOO_MANY_CONNECTIONS: &str = "53300";
/// No user name, or one that is not welcome.
pub(super) const SQLSTATE_INVALID_AUTHORIZATION: &str = "28000";
/// No prepared statement of that name.
pub(super) const SQLSTATE_UNDEFINED_STATEMENT: &str = "26000";
/// No portal of that name.
pub(super) const SQLSTATE_UNDEFINED_PORTAL: &str = "34000";
/// A prepared statement of that name exists.
pub(super) const SQLSTATE_DUPLICATE_STATEMENT: &str = "42P05";
/// A portal of that name exists.
pub(super) const SQLSTATE_DUPLICATE_PORTAL: &str = "42P03";
/// Bytes that are not UTF-8.
pub(super) const SQLSTATE_BAD_ENCODING: &str = "22021";
/// Bytes that are not a value of the parameter's type.
pub(super) const SQLSTATE_BAD_BINARY: &str = "22P03";

/// Why a message was not answered as hoped.
#[derive(Debug)]
pub(super) enum Failure {
    /// The client is told, and the conversation goes on.
    Error(Report),
    /// The client is told, and the connection is closed.
    Fatal(Report),
    /// The client has gone; there is nobody to tell.
    Gone,
}

impl Failure {
    /// An error that only the wire knows, with an SQLSTATE of its own.
    pub(super) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Failure::Error(Report::new(sqlstate, message))
    }

    /// The client broke the protocol; what follows cannot be trusted.
    pub(super) fn protocol(message: impl Into<String>) -> Self {
        Failure::Fatal(Report::from(Error::new(Kind::Protocol, message)))
    }
}

/// The statement was cancelled by the client.
pub(super) fn cancelled() -> Failure {
    Failure::from(Error::new(Kind::Cancelled, "canceling statement due to user request"))
}

/// The server stops, and this connection with it.
pub(super) fn shutting_down() -> Failure {
    Failure::Fatal(Report::from(Error::new(
        Kind::Shutdown,
        "terminating connection because the server is shutting down",
    )))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(Report::from(error))
    }
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Self {
        Failure::Gone
    }
}

/// An error as the client gets it.
#[derive(Debug)]
pub(super) struct Report {
    /// Five characters that drivers switch on.
    pub(super) sqlstate: &'static str,
    /// One line.
    pub(super) message: String,
    detail: Option<String>,
    hint: Option<String>,
    position: Option<u32>,
}

impl Report {
    /// A message without detail, hint or position.
    pub(super) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Report { sqlstate, message: message.into(), detail: None, hint: None, position: None }
    }

    /// The message for the client; `severity` is `ERROR` or `FATAL`.
    pub(super) fn response(&self, severity: &str) -> ErrorResponse {
        let mut fields = head(severity, self.sqlstate, &self.message);
        let rest =
            [(b'D', self.detail.clone()), (b'H', self.hint.clone()), (b'P', self.position.map(|p| p.to_string()))];
        fields.extend(rest.into_iter().filter_map(|(field, text)| Some((field, printable(&text?)))));
        ErrorResponse::new(fields)
    }
}

impl From<Error> for Report {
    fn from(error: Error) -> Self {
        let Error { kind, message, detail, hint, position } = error;
        Report { sqlstate: kind.sqlstate(), message, detail, hint, position }
    }
}

/// The message for a notice.
pub(super) fn notice(notice: &Notice) -> NoticeResponse {
    let sqlstate = if notice.severity == "WARNING" { "01000" } else { "00000" };
    NoticeResponse::new(head(notice.severity, sqlstate, &notice.message))
}

fn head(severity: &str, sqlstate: &str, message: &str) -> Vec<(u8, String)> {
    vec![(b'S', severity.into()), (b'V', severity.into()), (b'C', sqlstate.into()), (b'M', printable(message))]
}

/// Strings in messages end at a zero byte, and a text that is quoted in an error may contain one.
fn printable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

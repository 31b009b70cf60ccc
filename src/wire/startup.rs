//! The first exchange: refuse encryption, read who connects, welcome them. There is no authentication: the server listens
//! on the loopback interface.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes};
use pgwire::messages::response::{ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey};

use super::cancel::Registration;
use super::error::{Failure, Report, SQLSTATE_INVALID_AUTHORIZATION};
use super::frame::{Reader, Writer};
use super::message::Body;
use crate::error::Error;
use crate::session::{ConnectionInfo, Session};

/// Codes in the place of a protocol version.
const CANCEL_REQUEST: u32 = 80_877_102;
const SSL_REQUEST: u32 = 80_877_103;
const GSS_ENCRYPTION_REQUEST: u32 = 80_877_104;

/// Encryption is offered at most this often before a real startup packet must come.
const ENCRYPTION_REQUESTS_MAX: usize = 2;

/// What a client wants.
#[derive(Debug)]
pub(super) enum Opening {
    /// To talk.
    Session(ConnectionInfo),
    /// To cancel what another connection runs.
    Cancel {
        /// The other connection's process number.
        process: i32,
        /// The other connection's secret.
        secret: i32,
    },
    /// Nothing: it closed. Port checks do that.
    Closed,
}

/// Reads startup packets until the client has said what it wants.
pub(super) async fn open(reader: &mut Reader, writer: &mut Writer) -> Result<Opening, Failure> {
    for _ in 0..=ENCRYPTION_REQUESTS_MAX {
        let Some(mut packet) = reader.startup_packet().await? else { return Ok(Opening::Closed) };
        match packet.get_u32() {
            SSL_REQUEST | GSS_ENCRYPTION_REQUEST => {
                writer.buffer().put_u8(b'N');
                writer.flush().await?;
            }
            CANCEL_REQUEST => return cancel_request(packet),
            version => return Ok(Opening::Session(startup(version, packet, writer)?)),
        }
    }
    Err(Failure::protocol("encryption was refused; a startup packet must follow"))
}

/// Tells the client that it is in, what the server's settings are, and how to cancel.
pub(super) fn welcome(writer: &mut Writer, session: &Session, registration: &Registration) -> Result<(), Failure> {
    writer.send(Authentication::Ok);
    for (name, value) in session.parameter_statuses() {
        writer.send(ParameterStatus::new(name, value));
    }
    writer.send(BackendKeyData::new(registration.process, SecretKey::I32(registration.secret)));
    for notice in session.take_notices() {
        writer.send(super::error::notice(&notice));
    }
    writer.send(ReadyForQuery::new(TransactionStatus::Idle));
    Ok(())
}

/// A key of another length is not ours; such a request is as good as none.
fn cancel_request(mut packet: Bytes) -> Result<Opening, Failure> {
    if packet.len() != 8 {
        return Ok(Opening::Closed);
    }
    Ok(Opening::Cancel { process: packet.get_i32(), secret: packet.get_i32() })
}

fn startup(version: u32, packet: Bytes, writer: &mut Writer) -> Result<ConnectionInfo, Failure> {
    let (major, minor) = (version >> 16, version & 0xffff);
    if major != 3 {
        let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0");
        return Err(Failure::Fatal(Report::from(Error::unsupported(message))));
    }
    let mut parameters = parameters(packet)?;
    let extensions: Vec<String> = parameters.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    parameters.retain(|name, _| !name.starts_with("_pq_."));
    if minor > 0 || !extensions.is_empty() {
        // The client asked for a newer minor version than 3.0, and goes on with 3.0 when told so.
        writer.send(NegotiateProtocolVersion::new(0, extensions));
    }
    let Some(user) = parameters.get("user").filter(|user| !user.is_empty()).cloned() else {
        let report = Report::new(SQLSTATE_INVALID_AUTHORIZATION, "no user name specified in startup packet");
        return Err(Failure::Fatal(report));
    };
    if parameters.get("replication").is_some_and(|value| !matches!(value.as_str(), "false" | "off" | "no" | "0")) {
        return Err(Failure::Fatal(Report::from(Error::unsupported("replication connections are not supported"))));
    }
    if let Some(options) = parameters.remove("options") {
        for (name, value) in command_line(&options) {
            parameters.entry(name).or_insert(value);
        }
    }
    let database = parameters.get("database").filter(|name| !name.is_empty()).unwrap_or(&user).clone();
    let application_name = parameters.get("application_name").cloned();
    Ok(ConnectionInfo { user, database, application_name, parameters })
}

/// Pairs of strings, ended by an empty one.
fn parameters(packet: Bytes) -> Result<BTreeMap<String, String>, Failure> {
    let mut body = Body(packet);
    let mut parameters = BTreeMap::new();
    loop {
        let name = body.string().map_err(fatal)?;
        if name.is_empty() {
            return Ok(parameters);
        }
        parameters.insert(name, body.string().map_err(fatal)?);
    }
}

/// Before a session exists, every error ends the connection.
fn fatal(failure: Failure) -> Failure {
    match failure {
        Failure::Error(report) => Failure::Fatal(report),
        other => other,
    }
}

/// Settings from `options`: `-c name=value` and `--name=value`. Other switches are for servers of another kind.
fn command_line(options: &str) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") => words.next(),
            other => other,
        };
        if let Some((name, value)) = setting.and_then(|setting| setting.split_once('=')) {
            settings.push((name.replace('-', "_"), value.to_string()));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_may_carry_settings_in_three_spellings() {
        let found = command_line("-c statement_timeout=5 -csearch_path=a --synchronous-commit=off -F");
        let expected = [("statement_timeout", "5"), ("search_path", "a"), ("synchronous_commit", "off")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_string(), value.to_string())));
    }
}

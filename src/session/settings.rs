//! SET and SHOW. Settings that Highwater reads are checked; what drivers and scripts of neighbours set is kept and
//! acknowledged; anything else is kept with a notice, so that a script runs and its author knows.

use std::collections::BTreeMap;

use super::outcome::Outcome;
use super::{Session, done};
use crate::error::{Error, Kind, Result};

/// A setting that is known: name, default, what it means, and whether clients are told its value at start.
struct Known {
    name: &'static str,
    default: &'static str,
    description: &'static str,
    reported: bool,
}

const fn known(name: &'static str, default: &'static str, description: &'static str) -> Known {
    Known { name, default, description, reported: false }
}

const fn reported(name: &'static str, default: &'static str, description: &'static str) -> Known {
    Known { name, default, description, reported: true }
}

/// Every known setting, by name.
static KNOWN: &[Known] = &[
    reported("application_name", "", "what the client calls itself"),
    known("bytea_output", "hex", "how bytea is written as text"),
    reported("client_encoding", "UTF8", "the client's character set; only UTF8"),
    known("client_min_messages", "notice", "which notices are sent"),
    reported("DateStyle", "ISO, MDY", "how dates are written; only ISO"),
    reported("default_transaction_read_only", "off", "whether new transactions only read"),
    known("extra_float_digits", "1", "floats are always written so that they read back the same"),
    reported("in_hot_standby", "off", "never a standby"),
    reported("integer_datetimes", "on", "times are 64-bit integers"),
    reported("IntervalStyle", "postgres", "how intervals are written"),
    reported("is_superuser", "on", "every user is, until roles exist"),
    known("max_identifier_length", "63", "bytes of a name at most"),
    known("rw_implicit_flush", "on", "accepted for RisingWave scripts: every write is visible when it returns"),
    known("search_path", "public", "schemas searched for a name"),
    reported("server_encoding", "UTF8", "the server's character set"),
    reported(
        "server_version",
        concat!("15.0 (Highwater ", env!("CARGO_PKG_VERSION"), ")"),
        "the Postgres version whose protocol and catalogs this server speaks",
    ),
    known("server_version_num", "150000", "the same, as a number"),
    reported("session_authorization", "", "the user who connected"),
    reported("standard_conforming_strings", "on", "backslashes in strings are plain"),
    known("statement_timeout", "0", "accepted, not enforced yet"),
    known("streaming_parallelism", "0", "accepted for RisingWave scripts: use WITH (parallelism = n)"),
    known("synchronous_commit", "on", "off: a write returns when it is visible, and is durable within 100 ms"),
    reported("TimeZone", "UTC", "zone in which timestamptz is shown; only UTC"),
    known("transaction_isolation", "repeatable read", "a transaction reads one epoch"),
    known("transaction_read_only", "off", "whether this transaction only reads"),
];

/// A session's values.
#[derive(Debug, Default)]
pub(super) struct Settings {
    set: BTreeMap<String, String>,
}

impl Settings {
    /// A value that the client sent at start; unknown ones are ignored, as Postgres ignores options it can.
    pub(super) fn start(&mut self, name: &str, value: &str) {
        if let Some(known) = find(name)
            && check(&name.to_ascii_lowercase(), value).is_ok()
        {
            self.set.insert(known.name.to_ascii_lowercase(), value.to_string());
        }
    }

    /// Back to the defaults.
    pub(super) fn reset(&mut self) {
        self.set.retain(|name, _| ["application_name", "session_authorization"].contains(&name.as_str()));
    }

    /// The value of a setting, or 42704.
    pub(super) fn get(&self, name: &str) -> Result<String> {
        let set = self.set.get(&name.to_ascii_lowercase()).cloned();
        set.or_else(|| find(name).map(|known| known.default.to_string())).ok_or_else(|| {
            Error::new(Kind::UndefinedObject, format!("unrecognized configuration parameter \"{name}\""))
                .hint("SHOW ALL lists them.")
        })
    }

    /// Name, value and meaning of every setting.
    pub(super) fn all(&self) -> Vec<(String, String, &'static str)> {
        let value = |known: &Known| self.get(known.name).expect("known settings have a default");
        let mut all: Vec<_> = KNOWN.iter().map(|k| (k.name.to_string(), value(k), k.description)).collect();
        let other = self.set.iter().filter(|(name, _)| find(name).is_none());
        all.extend(other.map(|(name, value)| (name.clone(), value.clone(), "not known to Highwater")));
        all
    }

    /// What clients are told at start.
    pub(super) fn reported(&self) -> Vec<(String, String)> {
        let reported = KNOWN.iter().filter(|known| known.reported);
        reported.map(|k| (k.name.to_string(), self.get(k.name).expect("known settings have a default"))).collect()
    }

    /// True if the setting is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.get(name)
            .is_ok_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "off" | "false" | "no" | "0" | "local"))
    }
}

impl Session {
    pub(super) fn set(&self, name: &str, value: Option<&str>) -> Result<Outcome> {
        let lower = name.to_ascii_lowercase();
        let Some(value) = value else {
            self.state().settings.set.remove(&lower);
            return Ok(done("RESET"));
        };
        check(&lower, value)?;
        if find(&lower).is_none() {
            self.notice(format!("setting \"{name}\" is not known to Highwater; it is kept and has no effect"));
        }
        self.state().settings.set.insert(lower, value.to_string());
        Ok(done("SET"))
    }
}

fn check(name: &str, value: &str) -> Result<()> {
    let lower = value.to_ascii_lowercase();
    let refuse = |allowed: &str| {
        Err(Error::invalid(format!("invalid value for parameter \"{name}\": \"{value}\""))
            .hint(format!("Available values: {allowed}.")))
    };
    match name {
        "synchronous_commit"
            if !["on", "off", "true", "false", "local", "remote_write", "remote_apply", "yes", "no", "1", "0"]
                .contains(&lower.as_str()) =>
        {
            refuse("on, off")
        }
        "client_encoding" if !["utf8", "utf-8", "unicode"].contains(&lower.as_str()) => refuse("UTF8"),
        "timezone" if !["utc", "etc/utc", "gmt", "+00:00", "0", "default"].contains(&lower.as_str()) => refuse("UTC"),
        _ => Ok(()),
    }
}

fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(name))
}

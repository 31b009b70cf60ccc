//! Settings of the server: file < environment < flags. Every field is a flag, an environment variable and a key of the file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::flow::engine::STEP_ROWS_DEFAULT;
use crate::types::time::Span;

/// Where checkpoints are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// On disk, in the data directory.
    Sled,
    /// Nowhere: the whole log is replayed at start. For tests.
    Memory,
}

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// As given; what is not given comes from the next source.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Given {
    /// Directory that holds everything the server keeps
    #[arg(long, env = "HIGHWATER_DATA")]
    pub data: Option<PathBuf>,
    /// Address for Postgres clients
    #[arg(long, env = "HIGHWATER_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// Where checkpoints are kept
    #[arg(long, env = "HIGHWATER_STATE_BACKEND", value_enum)]
    pub state_backend: Option<BackendKind>,
    /// Milliseconds between checkpoints
    #[arg(long, env = "HIGHWATER_CHECKPOINT_INTERVAL_MS")]
    pub checkpoint_interval_ms: Option<u64>,
    /// Rows in one step of an epoch at most
    #[arg(long, env = "HIGHWATER_STEP_ROWS")]
    pub step_rows: Option<usize>,
    /// Shards of each operator by default; the number of cores if not given
    #[arg(long, env = "HIGHWATER_PARALLELISM")]
    pub parallelism: Option<usize>,
    /// How logs are written
    #[arg(long, env = "HIGHWATER_LOG_FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,
}

/// Every setting, decided.
#[derive(Debug, Clone)]
pub struct Config {
    /// Directory that holds everything the server keeps.
    pub data: PathBuf,
    /// Address for Postgres clients.
    pub listen: SocketAddr,
    /// Where checkpoints are kept.
    pub state_backend: BackendKind,
    /// Milliseconds between checkpoints.
    pub checkpoint_interval_ms: u64,
    /// Rows in one step at most.
    pub step_rows: usize,
    /// Shards of each operator; `None` is the number of cores.
    pub parallelism: Option<usize>,
    /// How logs are written.
    pub log_format: LogFormat,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            data: PathBuf::from("data"),
            listen: SocketAddr::from(([127, 0, 0, 1], 5477)),
            state_backend: BackendKind::Sled,
            checkpoint_interval_ms: 1_000,
            step_rows: STEP_ROWS_DEFAULT,
            parallelism: None,
            log_format: LogFormat::Text,
        }
    }
}

impl Config {
    /// Flags (which clap has filled from the environment) over the file over the defaults.
    pub fn load(flags: Given, file: Option<&Path>) -> Result<Config> {
        let mut config = Config::default();
        if let Some(path) = file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Error::io(format!("reading {}", path.display()), &error))?;
            let given: Given = toml::from_str(&text)
                .map_err(|error| Error::invalid(format!("{}: {}", path.display(), error.message())))?;
            config.take(given);
        }
        config.take(flags);
        if config.step_rows == 0 || config.parallelism == Some(0) {
            return Err(Error::invalid("step-rows and parallelism must be at least 1"));
        }
        Ok(config)
    }

    /// Shards of each operator by default.
    pub fn cores(&self) -> usize {
        self.parallelism.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Microseconds between checkpoints.
    pub fn checkpoint_interval_us(&self) -> Span {
        (self.checkpoint_interval_ms as Span).saturating_mul(1_000)
    }

    fn take(&mut self, given: Given) {
        let Given { data, listen, state_backend, checkpoint_interval_ms, step_rows, parallelism, log_format } = given;
        self.data = data.unwrap_or_else(|| std::mem::take(&mut self.data));
        self.listen = listen.unwrap_or(self.listen);
        self.state_backend = state_backend.unwrap_or(self.state_backend);
        self.checkpoint_interval_ms = checkpoint_interval_ms.unwrap_or(self.checkpoint_interval_ms);
        self.step_rows = step_rows.unwrap_or(self.step_rows);
        self.parallelism = parallelism.or(self.parallelism);
        self.log_format = log_format.unwrap_or(self.log_format);
    }
}

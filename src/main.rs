//! `highwater serve` and `highwater demo`: arguments, tracing, configuration, run.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use highwater::config::{Config, Given, LogFormat};
use highwater::error::{Error, Result};
use highwater::server::Server;
use highwater::types::time::SystemClock;
use highwater::wire;
use tokio::net::TcpListener;
use tokio::sync::watch;

mod demo;

/// A streaming SQL database that speaks the Postgres protocol.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the server until SIGTERM or Ctrl-C
    Serve {
        #[command(flatten)]
        given: Given,
        /// File with settings; environment and flags go before it
        #[arg(long, env = "HIGHWATER_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Runs the server on two weeks of real flights and shows what it can do
    Demo {
        #[command(flatten)]
        given: Given,
        /// Stop when the demo has been shown
        #[arg(long)]
        once: bool,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve { given, config } => Config::load(given, config.as_deref()).and_then(|config| run(config, None)),
        Command::Demo { given, once } => demo::config(given).and_then(|config| run(config, Some(once))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

fn report(error: &Error) {
    eprintln!("highwater: {}", error.message);
    if let Some(detail) = &error.detail {
        eprintln!("  {detail}");
    }
    if let Some(hint) = &error.hint {
        eprintln!("  Hint: {hint}");
    }
}

/// Runs the server; with `demo`, shows the demo on it and, if that is `Some(true)`, stops.
fn run(config: Config, demo: Option<bool>) -> Result<()> {
    trace(config.log_format, demo.is_some());
    let runtime = tokio::runtime::Runtime::new().map_err(|error| Error::io("starting the runtime", &error))?;
    let handle = runtime.handle().clone();
    runtime.block_on(async move {
        let listener = TcpListener::bind(config.listen)
            .await
            .map_err(|error| Error::io(format!("listening on {}", config.listen), &error))?;
        let address = listener.local_addr().map_err(|error| Error::io("reading the listening address", &error))?;
        let server = tokio::task::block_in_place(|| Server::start(config, Arc::new(SystemClock), &handle))?;
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(wire::serve(listener, Arc::clone(&server), stopped));
        tracing::info!(%address, "listening");
        let once = match demo {
            None => false,
            Some(once) => {
                demo::show(&server, address).await?;
                once
            }
        };
        if !once {
            signal().await?;
        }
        tracing::info!("shutting down");
        let _ = stop.send(true);
        serving.await.map_err(|error| Error::internal(format!("the listener panicked: {error}")))??;
        server.control().shutdown().await
    })
}

async fn signal() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| Error::io("waiting for SIGTERM", &error))?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        pressed = tokio::signal::ctrl_c() => pressed.map_err(|error| Error::io("waiting for Ctrl-C", &error)),
    }
}

fn trace(format: LogFormat, quiet: bool) {
    let default = if quiet { "warn" } else { "highwater=info,warn" };
    let filter = tracing_subscriber::EnvFilter::try_from_env("HIGHWATER_LOG").unwrap_or_else(|_| default.into());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => builder.with_target(false).with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().init(),
    }
}

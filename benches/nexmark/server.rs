//! One server process, one query: what it costs.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::Measured;
use super::queries::{self, Query};

/// No checkpoint during a run, and nowhere to put one.
const FLAGS: [&str; 4] = ["--state-backend", "memory", "--checkpoint-interval-ms", "3600000"];

/// Kernel ticks per second, the same on every Linux that Rust runs on.
const TICKS: f64 = 100.0;

/// A running server; killed when it goes out of scope.
struct Server {
    child: Child,
    port: u16,
    _data: tempfile::TempDir,
}

/// Runs a query from the first statement to the last row visible; or says why it is refused.
pub async fn measure(query: &Query, input: &Path) -> Result<Measured, String> {
    let server = Server::start();
    let client = server.connect().await;
    rows(&client, "SELECT 1").await?;
    let (cpu, start) = (server.cpu_s(), Instant::now());
    for stream in query.reads {
        rows(&client, &queries::stream(stream, &input.display().to_string())).await?;
    }
    for statement in query.statements() {
        rows(&client, &statement).await?;
    }
    rows(&client, "FLUSH").await?;
    let measured = Measured {
        cpu_s: server.cpu_s() - cpu,
        wall_s: start.elapsed().as_secs_f64(),
        peak_mb: server.peak_mb(),
        ..Measured::default()
    };
    let read = rows(&client, "SELECT sum(rows) FROM hw_catalog.watermarks").await?;
    let failed = rows(&client, "SELECT reason FROM hw_catalog.relations WHERE status = 'failed'").await?;
    if let Some(reason) = failed.first() {
        return Err(format!("failed: {reason}"));
    }
    Ok(Measured { rows: number(&read) as u64, slowest: slowest(&client).await?, ..measured })
}

/// The engine's wall time in its three parts, and the operator with most of it. Parsing is beside, on other threads.
async fn slowest(client: &Client) -> Result<String, String> {
    let mut parts = Vec::new();
    for (name, column) in [("log", "log_us"), ("operators", "step_us"), ("publish", "publish_us")] {
        let sum = rows(client, &format!("SELECT sum({column}) FROM hw_catalog.epochs")).await?;
        parts.push(format!("{name} {:.1} s", number(&sum) / 1e6));
    }
    let busiest = "SELECT operator || ' ' || round(busy_us / 1e6, 1) || ' s' FROM hw_catalog.operators ORDER BY busy_us DESC LIMIT 1";
    // A server of an earlier version has no such table.
    parts.extend(rows(client, busiest).await.unwrap_or_default());
    Ok(parts.join(", "))
}

/// First columns of the rows, or the error.
async fn rows(client: &Client, sql: &str) -> Result<Vec<String>, String> {
    let messages = client.simple_query(sql).await.map_err(|error| match error.as_db_error() {
        Some(error) => format!("{}: {}", error.code().code(), error.message()),
        None => error.to_string(),
    })?;
    let first = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(String::from),
        _ => None,
    };
    Ok(messages.iter().filter_map(first).collect())
}

fn number(rows: &[String]) -> f64 {
    rows.first().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

impl Server {
    fn start() -> Server {
        let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
        let binary = std::env::var_os("HIGHWATER_BIN").map_or(env!("CARGO_BIN_EXE_highwater").into(), PathBuf::from);
        let mut child = Command::new(&binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--data"])
            .arg(data.path())
            .args(FLAGS)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
        let mut lines = BufReader::new(child.stderr.take().expect("piped above")).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let logged: serde_json::Value = serde_json::from_str(&line).ok()?;
            logged["fields"]["address"].as_str()?.rsplit_once(':')?.1.parse().ok()
        });
        // Somebody must read what the server says from now on, or it would wait for a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Server { child, port: port.expect("the server says where it listens"), _data: data }
    }

    async fn connect(&self) -> Client {
        let config = format!("host=127.0.0.1 port={} user=bench dbname=highwater", self.port);
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("connects");
        tokio::spawn(connection);
        client
    }

    /// User and system time of the process so far.
    fn cpu_s(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        // Behind the name, which may have blanks: utime and stime are the fields 14 and 15 of the whole line.
        let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
        let ticks = |field: usize| fields[field - 3].parse::<f64>().expect("a number");
        (ticks(14) + ticks(15)) / TICKS
    }

    /// Peak resident memory.
    fn peak_mb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

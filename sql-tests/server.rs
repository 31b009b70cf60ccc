//! The real binary as a child process, for one test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// A running server. Killed when it goes out of scope.
pub struct Server {
    child: Child,
    port: u16,
    flags: Vec<String>,
    data: PathBuf,
    _own: Option<tempfile::TempDir>,
}

impl Server {
    /// Starts a server on an empty directory of its own.
    pub fn start(flags: &[&str]) -> Server {
        let own = tempfile::tempdir().expect("a temporary directory");
        let data = own.path().to_path_buf();
        Server::start_in(&data, flags, Some(own))
    }

    fn start_in(data: &Path, flags: &[&str], own: Option<tempfile::TempDir>) -> Server {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_string()).collect();
        let (child, port) = spawn(data, &flags);
        Server { child, port, flags, data: data.to_path_buf(), _own: own }
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server is ours to kill");
        self.child.wait().expect("a killed child ends");
    }

    /// Starts again on the same directory after `kill`.
    pub fn restart(&mut self) {
        (self.child, self.port) = spawn(&self.data, &self.flags);
    }

    /// The process, for those who kill it from another thread.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// True while the process runs.
    pub fn alive(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked").is_none()
    }

    /// Its port on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A new connection.
    pub async fn connect(&self) -> Client {
        self.try_connect().await.expect("the server accepts connections")
    }

    /// A new connection, if the server is there.
    pub async fn try_connect(&self) -> Result<Client, tokio_postgres::Error> {
        let config = format!("host=127.0.0.1 port={} user=test dbname=highwater", self.port);
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the binary and waits until it says where it listens.
fn spawn(data: &Path, flags: &[String]) -> (Child, u16) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_highwater"))
        .args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--data"])
        .arg(data)
        .args(flags)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    let mut lines = BufReader::new(child.stderr.take().expect("piped above")).lines();
    let mut seen = String::new();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        seen.push_str(&line);
        seen.push('\n');
        let logged: serde_json::Value = serde_json::from_str(&line).ok()?;
        logged["fields"]["address"].as_str()?.rsplit_once(':')?.1.parse().ok()
    });
    // Somebody must read what the server says from now on, or it would wait for a full pipe.
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok).filter(|line| line.contains("\"ERROR\"")) {
            eprintln!("server: {line}");
        }
    });
    (child, port.unwrap_or_else(|| panic!("the server did not start:\n{seen}")))
}

/// Rows of the last statement as text, NULL as `NULL`.
pub async fn rows(client: &Client, sql: &str) -> Vec<Vec<String>> {
    try_rows(client, sql).await.unwrap_or_else(|error| panic!("{sql}\n{}", describe(&error)))
}

/// Like [`rows`], with the error.
pub async fn try_rows(client: &Client, sql: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let messages = client.simple_query(sql).await?;
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|column| row.get(column).unwrap_or("NULL").to_string()).collect())
        }
        _ => None,
    };
    Ok(messages.into_iter().filter_map(row).collect())
}

/// SQLSTATE, message, detail and hint of a failed statement.
pub fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        None => error.to_string(),
        Some(error) => {
            let mut text = format!("{}: {}", error.code().code(), error.message());
            for (name, part) in [("DETAIL", error.detail()), ("HINT", error.hint())] {
                if let Some(part) = part {
                    text.push_str(&format!("\n{name}: {part}"));
                }
            }
            text
        }
    }
}

/// A runtime for one test.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

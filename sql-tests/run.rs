//! Runs every `.slt` file in this folder, each on a server of its own, once per state backend.
//!
//! One statement is the harness's own: `CRASH` kills the server with SIGKILL and starts it again on the same directory.
//! Later statements see what survived.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::server::{Server, block_on, describe};

#[test]
fn sled() {
    run_all("sled");
}

#[test]
fn memory() {
    run_all("memory");
}

fn run_all(backend: &'static str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql-tests");
    let mut files = Vec::new();
    collect(&root, &mut files);
    assert!(!files.is_empty(), "there are test files");
    files.sort();
    files.reverse();
    let (queue, failures) = (Mutex::new(files), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(file) = { queue.lock().expect("no panic inside").pop() } {
                    let outcome = block_on(run_file(&file, backend));
                    if let Err(error) = outcome {
                        failures.lock().expect("no panic inside").push(format!("{}\n{error}", file.display()));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic inside");
    assert!(failures.is_empty(), "{} of the files fail on {backend}:\n{}", failures.len(), failures.join("\n\n"));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "slt") {
            files.push(path);
        }
    }
}

async fn run_file(file: &Path, backend: &str) -> Result<(), String> {
    let server = Server::start(&["--state-backend", backend]);
    let client = server.connect().await;
    let mut database = Some(Database { server, client });
    let mut runner = Runner::new(|| {
        let database = database.take();
        async { Ok(database.expect("files use one connection")) }
    });
    runner.run_file_async(file).await.map_err(|error| error.to_string())
}

struct Database {
    server: Server,
    client: Client,
}

/// An error as the files expect it: SQLSTATE, message, detail, hint.
#[derive(Debug)]
struct Failed(String);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

#[async_trait]
impl AsyncDB for Database {
    type Error = Failed;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failed> {
        if sql.trim() == "CRASH" {
            self.server.kill();
            self.server.restart();
            self.client = self.server.connect().await;
            return Ok(DBOutput::StatementComplete(0));
        }
        let messages = self.client.simple_query(sql).await.map_err(|error| Failed(describe(&error)))?;
        let mut columns = None;
        let mut rows = Vec::new();
        let mut changed = 0;
        for message in messages {
            match message {
                SimpleQueryMessage::RowDescription(described) => columns = Some(described.len()),
                SimpleQueryMessage::Row(row) => rows.push((0..row.len()).map(|c| text(row.get(c))).collect()),
                SimpleQueryMessage::CommandComplete(count) => changed = count,
                _ => {}
            }
        }
        Ok(match columns {
            Some(columns) => DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows },
            None => DBOutput::StatementComplete(changed),
        })
    }

    fn engine_name(&self) -> &str {
        "highwater"
    }

    async fn shutdown(&mut self) {}
}

fn text(value: Option<&str>) -> String {
    match value {
        None => "NULL".into(),
        Some("") => "(empty)".into(),
        Some(value) => value.to_string(),
    }
}

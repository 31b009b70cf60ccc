//! One row over the wire, until it is visible in a windowed view: `INSERT` returns then. Both settings of
//! `synchronous_commit`, and the machine's own fsync beside them.
//!
//! `cargo bench --bench latency`

#![allow(clippy::disallowed_methods, reason = "measuring time is what a bench is for")]

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use highwater::config::Config;
use highwater::server::Server;
use highwater::types::time::SystemClock;
use highwater::wire;
use tokio_postgres::{Client, NoTls};

/// Rows of each measurement.
const ROWS: usize = 2_000;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let config = Config { data: folder.path().into(), ..Config::default() };
        let handle = tokio::runtime::Handle::current();
        let server = tokio::task::block_in_place(|| Server::start(config, Arc::new(SystemClock), &handle)).expect("a server");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (_stop, stopped) = tokio::sync::watch::channel(false);
        tokio::spawn(wire::serve(listener, Arc::clone(&server), stopped));
        let (client, connection) = tokio_postgres::connect(&format!("host=127.0.0.1 port={port} user=bench dbname=highwater"), NoTls).await.expect("connects");
        tokio::spawn(connection);
        for statement in [
            "CREATE STREAM bids (at TIMESTAMP, auction INT, price INT, WATERMARK FOR at AS at - INTERVAL '5 seconds')",
            "CREATE MATERIALIZED VIEW v AS SELECT window_start, window_end, auction, count(*) AS c, sum(price) AS s
             FROM TUMBLE(bids, at, INTERVAL '10 minutes') GROUP BY window_start, window_end, auction LATE DATA INTO late",
        ] {
            client.batch_execute(statement).await.expect("creates");
        }
        println!("one row to visible in the view, {ROWS} rows each, milliseconds");
        for setting in ["off", "on"] {
            client.batch_execute(&format!("SET synchronous_commit = {setting}")).await.expect("sets");
            report(&format!("simple,   synchronous_commit = {setting}"), simple(&client).await);
            report(&format!("prepared, synchronous_commit = {setting}"), prepared(&client).await);
        }
        server.control().shutdown().await.expect("a clean stop");
        report("the machine's write + fdatasync of 400 bytes", fsync(folder.path()));
    });
}

async fn simple(client: &Client) -> Vec<f64> {
    let mut times = Vec::with_capacity(ROWS);
    for row in 0..ROWS {
        let sql = format!(
            "INSERT INTO bids VALUES (TIMESTAMP '2026-01-01 12:{:02}:{:02}', {}, {row})",
            row / 60 % 60,
            row % 60,
            row % 100
        );
        let start = Instant::now();
        client.simple_query(&sql).await.expect("inserts");
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times
}

async fn prepared(client: &Client) -> Vec<f64> {
    let statement =
        client.prepare("INSERT INTO bids VALUES (TIMESTAMP '2026-01-01 12:30:00', $1, $2)").await.expect("prepares");
    let mut times = Vec::with_capacity(ROWS);
    for row in 0..ROWS as i32 {
        let start = Instant::now();
        client.execute(&statement, &[&(row % 100), &row]).await.expect("inserts");
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times
}

fn fsync(folder: &std::path::Path) -> Vec<f64> {
    let mut file = std::fs::File::create(folder.join("fsync")).expect("a file");
    let mut times = Vec::with_capacity(200);
    for _ in 0..200 {
        let start = Instant::now();
        file.write_all(&[7; 400]).expect("writes");
        file.sync_data().expect("syncs");
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times
}

fn report(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{name:<46} p50 {:>7.3}   p99 {:>7.3}   max {:>7.3}", at(0.5), at(0.99), at(1.0));
}

//! Nexmark as materialized views over CSV files, beside DuckDB answering once over the same files, and Flink.
//!
//! `cargo bench --bench nexmark [-- EVENTS] [q05 q12 ...]`; 2,000,000 events and all queries by default.
//!
//! One server per query, without checkpoints; the ingest log is on, as always, and durable before rows are visible. CPU is
//! the process's own, from an idle server to the last row visible. DuckDB runs if `python3` has the module `duckdb`; Flink if
//! `FLINK_LAB` names the folder that its `setup.sh` filled. `HIGHWATER_BIN` names another server, `NEXMARK_RUNS` a number
//! of runs other than three. The run with the least CPU counts, of each engine, and the highest memory.

#![allow(clippy::disallowed_methods, reason = "measuring time is what a bench is for")]

mod events;
mod peers;
mod queries;
mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use peers::Peer;
use queries::Query;

/// Events per second of event time.
const RATE: usize = 10_000;

/// Times DuckDB's CPU that a query may take, and one that joins.
const DUCKDB_BAR: f64 = 2.2;
const DUCKDB_BAR_JOIN: f64 = 3.5;

/// Times our CPU that Flink should take at least.
const FLINK_BAR: f64 = 2.5;

/// Peak memory of what need not keep every bid, and of the others, in MB.
const MEMORY_BAR_MB: u64 = 500;
const MEMORY_BAR_ROWS_MB: u64 = 1_500;

/// One run.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// CPU-seconds, user and system.
    pub cpu_s: f64,
    pub wall_s: f64,
    /// Peak resident memory.
    pub peak_mb: u64,
    /// Rows read; 0 if the engine does not say.
    pub rows: u64,
    /// Where most of the time went.
    pub slowest: String,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let events = arguments.iter().find_map(|a| a.replace('_', "").parse().ok()).unwrap_or(2_000_000);
    let named: Vec<&Query> = queries::ALL.iter().filter(|query| arguments.iter().any(|a| a == query.name)).collect();
    let asked = if named.is_empty() { queries::ALL.iter().collect() } else { named };
    let runs = std::env::var("NEXMARK_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(3);
    let input = input(events);
    let flink = peers::flink(&input, &asked, runs);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!("{events} events from {}, best of {runs} runs, CPU-seconds per million rows read", input.display());
    println!(
        "{:<5}{:>8}{:>9}{:>9}{:>7}  {:>8}{:>8}{:>8}  {:>7}{:>8}  slowest part",
        "query", "cpu-s/M", "k rows/s", "peak MB", "x q0", "duckdb", "peak MB", "ratio", "flink", "ratio"
    );
    let mut table = Table { flink, ..Table::default() };
    for query in asked {
        let mut ours: Vec<Measured> = Vec::new();
        let mut duckdb: Vec<Measured> = Vec::new();
        // In turn, so that a busy machine is busy for both.
        for _ in 0..runs {
            match runtime.block_on(server::measure(query, &input)) {
                Ok(measured) => ours.push(measured),
                Err(refused) => {
                    println!("{:<5}{refused}", query.name);
                    break;
                }
            }
            duckdb.extend(peers::duckdb(&input, query));
        }
        if let Some(ours) = best(ours) {
            table.print(query, &ours, best(duckdb));
        }
    }
    table.summary();
}

/// The CSV files of this many events, written at the first use and kept below the target directory.
fn input(events: usize) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nexmark-{events}"));
    if !folder.exists() {
        let unfinished = folder.with_extension("unfinished");
        events::write(&unfinished, events, events::config(RATE)).expect("the events are written");
        std::fs::rename(&unfinished, &folder).expect("renamed");
    }
    folder
}

fn best(runs: Vec<Measured>) -> Option<Measured> {
    let peak_mb = runs.iter().map(|run| run.peak_mb).max();
    let best = runs.into_iter().min_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
    best.zip(peak_mb).map(|(best, peak_mb)| Measured { peak_mb, ..best })
}

/// What was printed, for the yardstick and the sums.
#[derive(Default)]
struct Table {
    /// Flink's best run of each query.
    flink: BTreeMap<String, Peer>,
    /// CPU-seconds per million rows of q0.
    yardstick: Option<f64>,
    duckdb_ratios: Vec<f64>,
    flink_ratios: Vec<f64>,
    missed: Vec<String>,
}

impl Table {
    fn print(&mut self, query: &Query, ours: &Measured, duckdb: Option<Measured>) {
        let millions = ours.rows as f64 / 1e6;
        let cpu = ours.cpu_s / millions;
        if query.name == "q00" {
            self.yardstick = Some(cpu);
        }
        let mut line = format!("{:<5}{cpu:>8.2}", query.name);
        line += &format!("{:>9.0}{:>9}", ours.rows as f64 / ours.wall_s / 1e3, ours.peak_mb);
        line += &self.yardstick.map_or(format!("{:>7}", "-"), |q0| format!("{:>7.1}", cpu / q0));
        line += &match duckdb {
            None => format!("  {:>8}{:>8}{:>8}", "-", "-", "-"),
            Some(peer) => {
                let ratio = ours.cpu_s / peer.cpu_s;
                self.duckdb_ratios.push(ratio);
                let bar = if query.text.contains("JOIN") { DUCKDB_BAR_JOIN } else { DUCKDB_BAR };
                self.miss(ratio > bar, format!("{}: {ratio:.1} times DuckDB's CPU, at most {bar}", query.name));
                format!("  {:>8.2}{:>8}{ratio:>8.1}", peer.cpu_s / millions, peer.peak_mb)
            }
        };
        line += &match self.flink.get(&query.view()).map(|peer| peer.cpu_s) {
            None => format!("  {:>7}{:>8}", "-", "-"),
            Some(cpu_s) => {
                let ratio = cpu_s / ours.cpu_s;
                self.flink_ratios.push(ratio);
                self.miss(
                    ratio < FLINK_BAR,
                    format!("{}: Flink's CPU is {ratio:.1} times ours, at least {FLINK_BAR}", query.name),
                );
                format!("  {:>7.2}{ratio:>8.1}", cpu_s / millions)
            }
        };
        if let Some(bar) = memory_bar(query) {
            self.miss(ours.peak_mb > bar, format!("{}: {} MB at the peak, at most {bar}", query.name, ours.peak_mb));
        }
        println!("{line}  {}", ours.slowest);
    }

    fn miss(&mut self, missed: bool, text: String) {
        if missed {
            self.missed.push(text);
        }
    }

    fn summary(&self) {
        for (name, ratios, what) in
            [("DuckDB", &self.duckdb_ratios, "times its CPU"), ("Flink", &self.flink_ratios, "times less CPU")]
        {
            if !ratios.is_empty() {
                let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
                println!("{name}, geometric mean of {} queries: {mean:.2} {what}", ratios.len());
            }
        }
        self.missed.iter().for_each(|missed| println!("missed  {missed}"));
    }
}

/// Bounds hold for 5 M events. Views that are as long as their input have none.
fn memory_bar(query: &Query) -> Option<u64> {
    match query.name {
        "q04" | "q05" | "q08" | "q11" | "q12" | "q15" | "q16" | "q17" => Some(MEMORY_BAR_MB),
        "q07" | "q09" | "q20" => Some(MEMORY_BAR_ROWS_MB),
        _ => None,
    }
}

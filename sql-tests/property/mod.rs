//! A view equals the batch query over the same tables: random tables, queries, changes, step sizes, shards and restarts.
//!
//! A failing case prints its seed; put the seed into [`KEPT`] so that it runs first from then on.
//! `HIGHWATER_SEED=n` runs one case, `HIGHWATER_CASES=n` as many as wanted, `HIGHWATER_LONG=1` runs for an hour.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use highwater::config::Config;

use super::inside::Inside;
use super::server::block_on;

mod grammar;

/// Seeds that failed once.
const KEPT: &[u64] = &[];

/// Cases in a plain `cargo test`: 2,000 views, each compared after 30 rounds of changes.
const CASES: u64 = 200;

/// Cases of the long form: more than an hour has room for.
const CASES_LONG: u64 = 1_000_000;

/// How long the long form takes.
const LONG: Duration = Duration::from_secs(3_600);

/// Views of a case.
const VIEWS: usize = 10;

/// Rounds of changes after the views exist.
const CHANGES: usize = 30;

#[test]
fn incremental_equals_batch() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("HIGHWATER_SEED") {
        return run_case(seed);
    }
    let long = number("HIGHWATER_LONG").is_some();
    let cases = number("HIGHWATER_CASES").unwrap_or(if long { CASES_LONG } else { CASES });
    let seeds: Vec<u64> = KEPT.iter().copied().chain((0..cases).map(|case| 1_000 + case)).collect();
    let (next, started) = (AtomicUsize::new(0), Instant::now());
    let work = || {
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            if long && started.elapsed() > LONG {
                return;
            }
            run_case(*seed);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                next.store(seeds.len(), Ordering::Relaxed);
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// Cases at a time.
const WORKERS: usize = 2;

fn run_case(seed: u64) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    block_on(async { Case::new(seed, folder.path()).run().await });
}

struct Case<'a> {
    seed: u64,
    random: Rng,
    folder: &'a Path,
    step_rows: usize,
    parallelism: usize,
    server: Option<Inside>,
    /// Name and query of each view.
    views: Vec<(String, String)>,
    /// Statements so far, to print when something is wrong.
    said: Vec<String>,
}

impl<'a> Case<'a> {
    fn new(seed: u64, folder: &'a Path) -> Self {
        let mut random = Rng::with_seed(seed);
        let step_rows = [1, 7, 65_536][random.usize(0..3)];
        let parallelism = random.usize(1..=4);
        Case { seed, random, folder, step_rows, parallelism, server: None, views: Vec::new(), said: Vec::new() }
    }

    async fn run(&mut self) {
        self.start();
        self.say("CREATE TABLE keyed (k INT PRIMARY KEY, g INT, n BIGINT, f DOUBLE PRECISION, s TEXT, at TIMESTAMP, d NUMERIC(12, 2))")
            .await;
        self.say("CREATE TABLE loose (g INT, n BIGINT, f DOUBLE PRECISION, s TEXT, at TIMESTAMP, d NUMERIC(12, 2))")
            .await;
        self.say("CREATE STREAM grown (g INT, n BIGINT, f DOUBLE PRECISION, s TEXT, at TIMESTAMP, d NUMERIC(12, 2))")
            .await;
        self.change().await;
        for number in 0..VIEWS {
            let query = grammar::query(&mut self.random, &self.views);
            self.say(&format!("CREATE MATERIALIZED VIEW v{number} AS {query}")).await;
            self.views.push((format!("v{number}"), query));
        }
        self.check().await;
        for _ in 0..CHANGES {
            self.change().await;
            if self.random.usize(0..6) == 0 {
                self.restart().await;
            }
            self.check().await;
        }
        self.stop().await;
    }

    fn start(&mut self) {
        let config = Config {
            data: self.folder.to_path_buf(),
            step_rows: self.step_rows,
            parallelism: Some(self.parallelism),
            checkpoint_interval_ms: [0, 50, 1_000_000][self.random.usize(0..3)],
            ..Config::default()
        };
        let server = Inside::start(config);
        self.server =
            Some(server.unwrap_or_else(|error| panic!("seed {}: the server does not open: {error}", self.seed)));
    }

    async fn stop(&mut self) {
        self.server.take().expect("running").stop().await.expect("a clean stop");
    }

    async fn restart(&mut self) {
        self.said.push("-- restart".into());
        if self.random.bool() {
            self.say("CHECKPOINT").await;
        }
        self.stop().await;
        self.parallelism = self.random.usize(1..=4);
        self.start();
    }

    async fn change(&mut self) {
        for _ in 0..self.random.usize(1..4) {
            let statement = match self.random.usize(0..7) {
                0..=1 => {
                    let first = self.random.i32(0..1_000_000) * 100;
                    let rows: Vec<String> =
                        (0..self.random.i32(1..30)).map(|i| format!("({}, {})", first + i, self.values())).collect();
                    format!("INSERT INTO keyed VALUES {}", rows.join(", "))
                }
                2 => {
                    let rows: Vec<String> =
                        (0..self.random.usize(1..30)).map(|_| format!("({})", self.values())).collect();
                    format!("INSERT INTO loose VALUES {}", rows.join(", "))
                }
                6 => {
                    let rows: Vec<String> =
                        (0..self.random.usize(1..30)).map(|_| format!("({})", self.values())).collect();
                    format!("INSERT INTO grown VALUES {}", rows.join(", "))
                }
                3 => format!("UPDATE keyed SET n = n + 1, g = {} WHERE {}", self.small(), self.condition()),
                4 => format!("UPDATE loose SET s = {}, f = f * 2 WHERE {}", self.text(), self.condition()),
                _ => format!("DELETE FROM {} WHERE {}", ["keyed", "loose"][self.random.usize(0..2)], self.condition()),
            };
            self.say(&statement).await;
        }
    }

    /// g, n, f, s, at, d: few different values, NULLs among them. Floats are multiples of a quarter, so that a batch sum is exact.
    fn values(&mut self) -> String {
        let f = match self.random.u8(0..24) {
            0..=2 => "NULL".into(),
            3 => "-0.0".into(),
            4 => "'NaN'::double precision".into(),
            _ => format!("{}", f64::from(self.random.i32(-20..20)) / 4.0),
        };
        let minute = self.random.i32(0..120);
        let at = if self.random.u8(0..10) == 0 {
            "NULL".into()
        } else {
            format!("TIMESTAMP '1969-12-31 23:{:02}:30'", minute % 60)
        };
        let d = match self.random.u8(0..8) {
            0 => "NULL".into(),
            _ => format!("{:.2}", f64::from(self.random.i32(-500..500)) / 100.0),
        };
        format!("{}, {}, {f}, {}, {at}, {d}", self.small(), self.small(), self.text())
    }

    fn small(&mut self) -> String {
        if self.random.u8(0..8) == 0 { "NULL".into() } else { self.random.i32(0..6).to_string() }
    }

    fn text(&mut self) -> String {
        ["NULL", "'a'", "'ab'", "'b'", "''", "'a rather long text that is in no small buffer'"][self.random.usize(0..6)]
            .into()
    }

    fn condition(&mut self) -> String {
        let value = self.random.i32(0..6);
        [
            format!("n = {value}"),
            format!("g > {value}"),
            format!("s < 'b' AND n < {value}"),
            "at IS NULL".into(),
            format!("g = {value} OR f < 0"),
        ][self.random.usize(0..5)]
        .clone()
    }

    async fn check(&mut self) {
        for (view, query) in self.views.clone() {
            let (kept, fresh) = (self.rows(&format!("SELECT * FROM {view}")).await, self.rows(&query).await);
            assert!(
                kept == fresh,
                "seed {} (step {}, shards {}): {view} differs from its query\n{query}\nonly in the view {:?}\nonly in the query {:?}\nafter\n{}",
                self.seed,
                self.step_rows,
                self.parallelism,
                only(&kept, &fresh),
                only(&fresh, &kept),
                self.said.join(";\n")
            );
        }
    }

    async fn say(&mut self, sql: &str) {
        self.said.push(sql.to_string());
        self.rows(sql).await;
    }

    /// Rows as sorted text.
    async fn rows(&self, sql: &str) -> Vec<String> {
        let rows = self.server.as_ref().expect("running").rows(sql).await;
        rows.unwrap_or_else(|error| panic!("seed {}: {sql}: {error}", self.seed))
    }
}

/// Up to five rows that are more often in `left`; both are sorted.
fn only(left: &[String], right: &[String]) -> Vec<String> {
    let count = |rows: &[String], row: &String| rows.iter().filter(|other| *other == row).count();
    let mut more: Vec<String> = left.iter().filter(|row| count(left, row) > count(right, row)).cloned().collect();
    more.dedup();
    more.truncate(5);
    more
}

//! A view equals the batch query over the same tables: random tables, queries, changes, step sizes, shards and restarts.
//!
//! A failing case prints its seed; put the seed into [`KEPT`] so that it runs first from then on.
//! `HIGHWATER_SEED=n` runs one case, `HIGHWATER_CASES=n` as many as wanted.

use std::path::Path;

use fastrand::Rng;
use highwater::config::Config;

use super::inside::Inside;
use super::server::block_on;

/// Seeds that failed once.
const KEPT: &[u64] = &[];

/// Cases in a plain `cargo test`.
const CASES: u64 = 40;

/// Views of a case.
const VIEWS: usize = 5;

/// Rounds of changes after the views exist.
const CHANGES: usize = 8;

#[test]
fn incremental_equals_batch() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("HIGHWATER_SEED") {
        return run_case(seed);
    }
    let random = (0..number("HIGHWATER_CASES").unwrap_or(CASES)).map(|case| 1_000 + case);
    KEPT.iter().copied().chain(random).for_each(run_case);
}

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
        self.say("CREATE TABLE keyed (k INT PRIMARY KEY, g INT, n BIGINT, f DOUBLE PRECISION, s TEXT, at TIMESTAMP)")
            .await;
        self.say("CREATE TABLE loose (g INT, n BIGINT, f DOUBLE PRECISION, s TEXT, at TIMESTAMP)").await;
        self.change().await;
        for number in 0..VIEWS {
            let query = self.query(number);
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

    /// A random continuous query. Later ones may read earlier views.
    fn query(&mut self, number: usize) -> String {
        let random = &mut self.random;
        let table = ["keyed", "loose"][random.usize(0..2)];
        let filter = ["", " WHERE n > 3", " WHERE g IS NOT NULL AND f < 2", " WHERE s LIKE 'a%' OR n IS NULL"]
            [random.usize(0..4)];
        let aggregates = [
            "count(*) AS c",
            "count(n) AS cn",
            "sum(n) AS sn",
            "sum(f) AS sf",
            "avg(n) AS an",
            "min(n) AS mn",
            "max(s) AS ms",
            "max(at) AS ma",
            "min(f) AS mf",
            "count(*) FILTER (WHERE n > 2) AS cf",
            "count(DISTINCT s) AS cd",
            "count(DISTINCT n) FILTER (WHERE f > 0) AS cdf",
            "sum(n + 1) FILTER (WHERE f > 0.5) AS sx",
        ];
        let mut chosen: Vec<&str> = random.choose_multiple(aggregates, 3);
        chosen.sort_unstable();
        let chosen = chosen.join(", ");
        let having = ["", " HAVING count(*) > 1", " HAVING sum(n) > 4"][random.usize(0..3)];
        let join = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"][random.usize(0..4)];
        let on = [
            "a.g = b.g",
            "a.g = b.g AND a.n < b.n",
            "a.g + 1 = b.n",
            "a.s = b.s AND a.f = b.f",
            "a.s = b.s AND (a.g IS NOT DISTINCT FROM b.g)",
        ][random.usize(0..5)];
        let exists = ["EXISTS", "NOT EXISTS"][random.usize(0..2)];
        match random.usize(0..18) {
            14 => "SELECT k, g, n, r FROM (SELECT k, g, n, row_number() OVER (PARTITION BY g ORDER BY n DESC, k) AS r FROM keyed) AS t WHERE r <= 2".into(),
            15 => "SELECT k, n FROM keyed ORDER BY n DESC, k LIMIT 4 OFFSET 1".into(),
            16 => "SELECT k, n, rank() OVER (PARTITION BY s ORDER BY n) AS r FROM keyed".into(),
            17 => "SELECT g, n, r FROM (SELECT g, n, dense_rank() OVER (ORDER BY n, f + 1) AS r FROM loose) AS t WHERE r < 4 AND g > 0".into(),
            8 => format!("SELECT a.k, a.n, b.n AS bn, b.s FROM keyed a {join} loose b ON {on}"),
            9 => format!("SELECT a.g, b.k, a.f FROM {table} a {join} keyed b ON {on}"),
            10 => format!("SELECT a.k, a.g FROM keyed a WHERE {exists} (SELECT 1 FROM loose b WHERE {on})"),
            11 => "SELECT a.g, count(*) AS c, sum(b.n) AS sn, max(b.s) AS ms FROM keyed a LEFT JOIN loose b ON a.g = b.g GROUP BY a.g".into(),
            12 => "SELECT a.k, b.n, c.s FROM keyed a JOIN loose b ON a.g = b.g LEFT JOIN keyed c ON c.n = b.n AND c.k <> a.k WHERE a.n < 3".into(),
            13 => "SELECT a.k, b.n FROM keyed a, loose b WHERE a.n > b.n AND a.f < b.f AND a.g IN (SELECT g FROM loose WHERE n > 1)".into(),
            0 => format!("SELECT g, n + 1 AS n1, upper(s) AS u FROM {table}{filter}"),
            1 => format!("SELECT g, {chosen} FROM {table}{filter} GROUP BY g{having}"),
            2 => format!("SELECT g, s, {chosen} FROM {table}{filter} GROUP BY g, s{having}"),
            3 => format!("SELECT {chosen} FROM {table}{filter}"),
            4 => format!("SELECT g, n FROM keyed{filter} UNION ALL SELECT g + 1, n FROM loose"),
            5 => format!(
                "SELECT window_start, g, {chosen} FROM TUMBLE({table}, at, INTERVAL '10 minutes'){filter} GROUP BY window_start, g"
            ),
            6 => format!(
                "SELECT window_start, window_end, {chosen} FROM HOP({table}, at, INTERVAL '4 minutes', INTERVAL '10 minutes'){filter} GROUP BY window_start, window_end{having}"
            ),
            _ if number > 0 && self.views[number - 1].1.starts_with("SELECT g, n") => {
                format!("SELECT g, count(*) AS c FROM v{} GROUP BY g", number - 1)
            }
            _ => format!(
                "SELECT g, sum(c) AS total FROM (SELECT g, s, count(*) AS c FROM {table}{filter} GROUP BY g, s) AS inner_counts GROUP BY g"
            ),
        }
    }

    async fn change(&mut self) {
        for _ in 0..self.random.usize(1..4) {
            let statement = match self.random.usize(0..6) {
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
                3 => format!("UPDATE keyed SET n = n + 1, g = {} WHERE {}", self.small(), self.condition()),
                4 => format!("UPDATE loose SET s = {}, f = f * 2 WHERE {}", self.text(), self.condition()),
                _ => format!("DELETE FROM {} WHERE {}", ["keyed", "loose"][self.random.usize(0..2)], self.condition()),
            };
            self.say(&statement).await;
        }
    }

    /// g, n, f, s, at: few different values, NULLs among them. Floats are multiples of a quarter, so that a batch sum is exact.
    fn values(&mut self) -> String {
        let f = if self.random.u8(0..8) == 0 {
            "NULL".into()
        } else {
            format!("{}", f64::from(self.random.i32(-20..20)) / 4.0)
        };
        let minute = self.random.i32(0..120);
        let at = if self.random.u8(0..10) == 0 {
            "NULL".into()
        } else {
            format!("TIMESTAMP '1969-12-31 23:{:02}:30'", minute % 60)
        };
        format!("{}, {}, {f}, {}, {at}", self.small(), self.small(), self.text())
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
            assert_eq!(
                kept,
                fresh,
                "seed {} (step {}, shards {}): {view} differs from its query\n{query}\nafter\n{}",
                self.seed,
                self.step_rows,
                self.parallelism,
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

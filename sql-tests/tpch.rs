//! The TPC-H queries as materialized views (scale 0.01): each equals the same query asked of the tables, after the load and
//! after every round of inserts, updates and deletes in all eight tables.
//!
//! Odd queries are views before the load and follow it row by row; even ones are made after it and start from the tables.
//! `HIGHWATER_SEED=n` makes other changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fastrand::Rng;
use highwater::config::{BackendKind, Config};
use tpchgen::{csv, generators};

use super::inside::Inside;
use super::server::block_on;
use changes::Round;

mod changes;

/// 1,500 customers, 15,000 orders, 60,175 line items.
const SCALE: f64 = 0.01;

/// Rounds of changes after the load.
const ROUNDS: u32 = 20;

/// The server restarts after this round, and replays its log.
const RESTART_AFTER: u32 = 10;

/// Queries with LIMIT, and their ORDER BY. Which of the rows that are equal there come out is for Highwater and for the
/// batch engine to decide, so only these columns are compared.
const LIMITED: [(&str, &str); 5] = [
    ("q02", "s_acctbal, n_name, s_name, p_partkey"),
    ("q03", "revenue, o_orderdate"),
    ("q10", "revenue"),
    ("q18", "o_totalprice, o_orderdate"),
    ("q21", "numwait, s_name"),
];

#[test]
fn views_equal_the_batch_queries() {
    let seed = std::env::var("HIGHWATER_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    block_on(run(seed));
}

async fn run(seed: u64) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut server = start(folder.path());
    let queries = queries();
    say(&server, &read("schema.sql")).await;
    let (before, after): (Vec<_>, Vec<_>) =
        queries.iter().partition(|(name, _)| name.ends_with(['1', '3', '5', '7', '9']));
    create(&server, &before).await;
    load(&server).await;
    create(&server, &after).await;

    let mut seen: BTreeMap<&str, BTreeSet<Vec<String>>> = BTreeMap::new();
    check(&server, &queries, &mut seen, "after the load").await;
    let mut random = Rng::with_seed(seed);
    for number in 1..=ROUNDS {
        let Round { inserts, updates, moves, deletes } = Round::new(number, &mut random);
        for group in [inserts, updates, moves, deletes] {
            // All tables in one epoch, so that both sides of every join change at once; or one after the other.
            match random.bool() {
                true => say(&server, &format!("BEGIN; {}; COMMIT", group.join("; "))).await,
                false => say(&server, &group.join("; ")).await,
            }
        }
        if number == RESTART_AFTER {
            server.stop().await.expect("a clean stop");
            server = start(folder.path());
        }
        check(&server, &queries, &mut seen, &format!("seed {seed}, round {number}")).await;
    }
    for (name, contents) in seen {
        assert!(contents.len() > 1, "{name} never changed: the rounds do not reach it");
    }
    server.stop().await.expect("a clean stop");
}

/// State is in memory: a million entries take sled longer than all of the rest, and `property` restarts on it.
fn start(folder: &Path) -> Inside {
    let config = Config {
        data: folder.to_path_buf(),
        parallelism: Some(2),
        state_backend: BackendKind::Memory,
        ..Config::default()
    };
    Inside::start(config).expect("the server opens")
}

/// `q01`.. and their texts.
fn queries() -> BTreeMap<String, String> {
    (1..=22).map(|number| format!("q{number:02}")).map(|name| (name.clone(), read(&format!("{name}.sql")))).collect()
}

fn read(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "sql-tests", "tpch", name].iter().collect();
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

async fn create(server: &Inside, queries: &[(&String, &String)]) {
    for (name, query) in queries {
        say(server, &format!("CREATE MATERIALIZED VIEW {name} AS {query}")).await;
    }
}

async fn load(server: &Inside) {
    use csv::{CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv};
    use generators::{CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator};
    use generators::{PartGenerator, PartSuppGenerator, RegionGenerator, SupplierGenerator};
    let tables = [
        ("region", lines(RegionGenerator::new(SCALE, 1, 1).iter().map(RegionCsv::new))),
        ("nation", lines(NationGenerator::new(SCALE, 1, 1).iter().map(NationCsv::new))),
        ("part", lines(PartGenerator::new(SCALE, 1, 1).iter().map(PartCsv::new))),
        ("supplier", lines(SupplierGenerator::new(SCALE, 1, 1).iter().map(SupplierCsv::new))),
        ("partsupp", lines(PartSuppGenerator::new(SCALE, 1, 1).iter().map(PartSuppCsv::new))),
        ("customer", lines(CustomerGenerator::new(SCALE, 1, 1).iter().map(CustomerCsv::new))),
        ("orders", lines(OrderGenerator::new(SCALE, 1, 1).iter().map(OrderCsv::new))),
        ("lineitem", lines(LineItemGenerator::new(SCALE, 1, 1).iter().map(LineItemCsv::new))),
    ];
    for (table, lines) in tables {
        let rows = server.copy(&format!("COPY {table} FROM STDIN WITH (FORMAT csv)"), lines).await;
        rows.unwrap_or_else(|error| panic!("{table}: {error}"));
    }
}

fn lines(rows: impl Iterator<Item: Display>) -> Bytes {
    let mut text = String::new();
    for row in rows {
        writeln!(text, "{row}").expect("a string takes everything");
    }
    text.into()
}

/// Compares every view, and remembers what it held.
async fn check<'a>(
    server: &Inside,
    queries: &'a BTreeMap<String, String>,
    seen: &mut BTreeMap<&'a str, BTreeSet<Vec<String>>>,
    when: &str,
) {
    for (name, query) in queries {
        let columns = LIMITED.iter().find(|(limited, _)| limited == name).map_or("*", |(_, columns)| columns);
        let kept = say_rows(server, &format!("SELECT {columns} FROM {name}")).await;
        let fresh = say_rows(server, &format!("SELECT {columns} FROM ({query}) AS batch")).await;
        assert_eq!(kept, fresh, "{when}: {name} differs from its query");
        seen.entry(name).or_default().insert(kept);
    }
}

async fn say(server: &Inside, sql: &str) {
    say_rows(server, sql).await;
}

async fn say_rows(server: &Inside, sql: &str) -> Vec<String> {
    server.rows(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

//! Nexmark queries as views, against the answers of other engines: of DuckDB over 2,000 events, stored in `nexmark/`, and
//! where that data is at hand, answers on which two other engines agree (20,000 events).
//!
//! The stored answers were made with `python3 benches/nexmark/duckdb_peer.py FOLDER --answers sql-tests/nexmark`, over a
//! folder that `HIGHWATER_NEXMARK_INPUT` names while this test runs: the input is left there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tokio_postgres::Client;

use super::server::{Server, block_on, describe, rows, try_rows};

#[path = "../benches/nexmark/events.rs"]
mod events;
#[path = "../benches/nexmark/queries.rs"]
mod queries;

use queries::Query;

/// Queries that are refused, with the start of the reason.
const REFUSED: [(&str, &str); 1] = [("q11", "42601: syntax error")];

/// Small enough to store every row of every answer, and still 50 seconds of event time.
const EVENTS: usize = 2_000;

/// Events per second of event time.
const RATE: usize = 40;

#[test]
fn answers_equal_duckdb() {
    let own = tempfile::tempdir().expect("a temporary directory");
    let input = std::env::var_os("HIGHWATER_NEXMARK_INPUT").map_or(own.path().into(), PathBuf::from);
    // The filler of a bid is there, but short; auctions and persons have none.
    let sizes = |config| nexmark::config::NexmarkConfig {
        avg_person_byte_size: 0,
        avg_auction_byte_size: 0,
        avg_bid_byte_size: 50,
        ..config
    };
    events::write(&input, EVENTS, sizes(events::config(RATE))).expect("written");
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql-tests/nexmark");
    compare(&input, &|query| Some(stored.join(format!("{}.csv", query.name))));
}

#[test]
fn answers_equal_two_other_engines() {
    let Some(folder) = oracle() else { return };
    compare(&folder.join("input"), &|query| {
        Some(folder.join("expected").join(format!("{}.csv", query.view()))).filter(|path| path.exists())
    });
}

/// Every query that has an answer, all on one server, in large steps and in small ones.
fn compare(input: &Path, answer: &dyn Fn(&Query) -> Option<PathBuf>) {
    block_on(async {
        for (step_rows, shards) in [("65536", "2"), ("100", "1")] {
            let server = Server::start(&["--step-rows", step_rows, "--parallelism", shards]);
            let client = server.connect().await;
            let asked: Vec<(&Query, PathBuf)> =
                queries::ALL.iter().filter_map(|query| Some((query, answer(query)?))).collect();
            let streams: BTreeSet<&str> = asked.iter().flat_map(|(query, _)| query.reads).copied().collect();
            for name in streams {
                rows(&client, &queries::stream(name, &input.display().to_string())).await;
            }
            let mut running = Vec::new();
            for (query, path) in asked {
                if create(&client, query).await {
                    running.push((query, path));
                }
            }
            rows(&client, "FLUSH").await;
            for (query, path) in running {
                let kept = rows(&client, &format!("SELECT * FROM {}", query.view())).await;
                if let Err(difference) = same(kept, read(&path)) {
                    panic!("{}, steps of {step_rows}, {shards} shards: {difference}", query.name);
                }
            }
        }
    });
}

/// Creates a query's view; false if it is refused as foreseen.
async fn create(client: &Client, query: &Query) -> bool {
    let refused = REFUSED.iter().find(|(name, _)| *name == query.name);
    for statement in query.statements() {
        match (try_rows(client, &statement).await.map_err(|error| describe(&error)), refused) {
            (Ok(_), None) => {}
            (Ok(_), Some(_)) => panic!("{} runs: take it off the list of refused queries", query.name),
            (Err(error), Some((_, reason))) if error.starts_with(reason) => return false,
            (Err(error), _) => panic!("{}\n{error}", query.name),
        }
    }
    true
}

/// Where the answers of two other engines are: beside the source, or where `HIGHWATER_ORACLE` says.
fn oracle() -> Option<PathBuf> {
    let named = std::env::var_os("HIGHWATER_ORACLE").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/bench/oracle");
    named.or(Some(beside)).filter(|path| path.exists())
}

/// Stored rows. No value of these answers has a comma or a quote.
fn read(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
}

/// The same rows in any order; numbers are compared as numbers.
fn same(kept: Vec<Vec<String>>, stored: Vec<Vec<String>>) -> Result<(), String> {
    let plain = |rows: Vec<Vec<String>>| {
        let mut rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|field| plain(field)).collect()).collect();
        rows.sort();
        rows
    };
    let (kept, stored) = (plain(kept), plain(stored));
    if kept.len() != stored.len() {
        return Err(format!("{} rows, {} are right", kept.len(), stored.len()));
    }
    match kept.iter().zip(&stored).find(|(kept, stored)| kept != stored) {
        None => Ok(()),
        Some((kept, stored)) => Err(format!("first difference\n  kept  {kept:?}\n  right {stored:?}")),
    }
}

/// Nothing for NULL (an empty field of the file), `…06.91` for `…06.910`, and a fraction to six decimals at most.
fn plain(field: &str) -> String {
    let is_time = field.len() >= 19 && field.as_bytes()[10] == b' ' && field.as_bytes()[13] == b':';
    match field.parse::<f64>() {
        Ok(number) if field.contains('.') => {
            format!("{number:.6}").trim_end_matches('0').trim_end_matches('.').to_string()
        }
        _ if field == "NULL" => String::new(),
        _ if is_time && field.contains('.') => field.trim_end_matches('0').trim_end_matches('.').to_string(),
        _ => field.to_string(),
    }
}

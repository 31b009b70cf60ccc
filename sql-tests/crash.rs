//! SIGKILL at random moments while the server ingests: no acknowledged row is lost, none is doubled, no late verdict
//! changes. `HIGHWATER_ROUNDS=n` kills as often as wanted.

use std::time::Duration;

use fastrand::Rng;
use tokio_postgres::Client;

use super::server::{Server, block_on, rows};

/// Kills in a plain `cargo test`.
const ROUNDS: usize = 10;

const CREATE: [&str; 4] = [
    "CREATE STREAM events (id BIGINT, at TIMESTAMP, g INT, WATERMARK FOR at AS at - INTERVAL '10 seconds')",
    "CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT)",
    "CREATE MATERIALIZED VIEW per_window AS SELECT window_start, window_end, g, count(*) AS c, sum(id) AS s
     FROM TUMBLE(events, at, INTERVAL '1 minute') GROUP BY window_start, window_end, g LATE DATA INTO late_events",
    "CREATE MATERIALIZED VIEW total AS SELECT count(*) AS accounts, sum(balance) AS balance FROM accounts",
];

#[test]
fn kill_at_random_moments() {
    let rounds = std::env::var("HIGHWATER_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    block_on(run(rounds));
}

/// What was acknowledged, and what may or may not have been.
#[derive(Default)]
struct Model {
    /// Events in the order they were sent; all up to `acknowledged` are in, then perhaps the batch in flight.
    events: Vec<(i64, i64, i64)>,
    acknowledged: usize,
    accounts: usize,
    accounts_acknowledged: usize,
}

async fn run(rounds: usize) {
    let mut random = Rng::with_seed(42);
    let mut server = Server::start(&["--checkpoint-interval-ms", "20"]);
    let client = server.connect().await;
    for statement in CREATE {
        rows(&client, statement).await;
    }
    let mut model = Model::default();
    for round in 0..rounds {
        let client = server.connect().await;
        let pid = server.pid();
        let delay = Duration::from_micros(random.u64(0..60_000));
        let killer = std::thread::spawn(move || {
            // Waiting is the point here: the kill must come at no particular moment.
            std::thread::park_timeout(delay);
            std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill runs");
        });
        while write(&client, &mut model, &mut random).await {}
        killer.join().expect("the killer ends");
        server.kill();
        server.restart();
        let client = server.connect().await;
        check(&client, &mut model, round).await;
    }
}

/// Sends one batch; false when the server is gone.
async fn write(client: &Client, model: &mut Model, random: &mut Rng) -> bool {
    if random.u8(0..4) == 0 {
        model.accounts += 1;
        let sql = format!("INSERT INTO accounts VALUES ({}, {})", model.accounts, model.accounts * 10);
        let written = client.simple_query(&sql).await.is_ok();
        if written {
            model.accounts_acknowledged = model.accounts;
        }
        return written;
    }
    let batch: Vec<(i64, i64, i64)> = (0..random.i64(1..40))
        .map(|i| {
            let id = model.events.len() as i64 + i;
            // Time goes on by about a second a row, and some rows come minutes late.
            let at = if random.u8(0..6) == 0 { (id - random.i64(0..300)).max(0) } else { id };
            (id, at, random.i64(0..3))
        })
        .collect();
    let values: Vec<String> = batch.iter().map(|(id, at, g)| format!("({id}, {}, {g})", timestamp(*at))).collect();
    let written = client.simple_query(&format!("INSERT INTO events VALUES {}", values.join(", "))).await.is_ok();
    model.events.extend(batch);
    if written {
        model.acknowledged = model.events.len();
    }
    written
}

async fn check(client: &Client, model: &mut Model, round: usize) {
    let count: usize = rows(client, "SELECT count(*) FROM events").await[0][0].parse().expect("a number");
    assert!(
        count == model.acknowledged || count == model.events.len(),
        "round {round}: {count} events, {} were acknowledged, {} sent",
        model.acknowledged,
        model.events.len()
    );
    // What was in flight is in or not, from now on for good.
    model.events.truncate(count);
    model.acknowledged = count;
    let (view, late) = expected(&model.events);
    let kept = rows(client, "SELECT window_start, g, c, s FROM per_window ORDER BY window_start, g").await;
    assert_eq!(kept, view, "round {round}: the view");
    let kept = rows(client, "SELECT id FROM late_events ORDER BY position").await;
    assert_eq!(
        kept.into_iter().map(|row| row[0].clone()).collect::<Vec<_>>(),
        late,
        "round {round}: the late rows, in order"
    );
    let counted = rows(
        client,
        "SELECT reason, rows FROM hw_catalog.late_records WHERE reason IN ('on-time', 'late') ORDER BY reason",
    )
    .await;
    let counts: Vec<String> = counted.into_iter().map(|row| row[1].clone()).collect();
    if count > 0 {
        assert_eq!(counts, [late.len().to_string(), (count - late.len()).to_string()], "round {round}: the counters");
    }
    let accounts: usize = rows(client, "SELECT count(*) FROM accounts").await[0][0].parse().expect("a number");
    assert!(
        accounts == model.accounts_acknowledged || accounts == model.accounts,
        "round {round}: {accounts} accounts"
    );
    model.accounts = accounts;
    model.accounts_acknowledged = accounts;
    let balance = if accounts == 0 { "NULL".into() } else { (accounts * (accounts + 1) / 2 * 10).to_string() };
    assert_eq!(
        rows(client, "SELECT accounts, balance FROM total").await,
        [[accounts.to_string(), balance]],
        "round {round}"
    );
}

/// The rule of the manual, row by row: late when window_end <= watermark before the row; watermark = max(at) - 10 s.
fn expected(events: &[(i64, i64, i64)]) -> (Vec<Vec<String>>, Vec<String>) {
    let mut windows = std::collections::BTreeMap::new();
    let (mut late, mut watermark) = (Vec::new(), i64::MIN);
    for (id, at, g) in events {
        let start = at.div_euclid(60) * 60;
        if start + 60 <= watermark {
            late.push(id.to_string());
        } else {
            let group = windows.entry((start, *g)).or_insert((0, 0));
            *group = (group.0 + 1, group.1 + id);
        }
        watermark = watermark.max(at - 10);
    }
    let shown = windows.into_iter().map(|((start, g), (c, s))| {
        vec![timestamp(start).replace("TIMESTAMP '", "").replace('\'', ""), g.to_string(), c.to_string(), s.to_string()]
    });
    (shown.collect(), late)
}

fn timestamp(seconds: i64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("TIMESTAMP '2026-01-{:02} {:02}:{minutes:02}:{seconds:02}'", 1 + hours / 24, hours % 24)
}

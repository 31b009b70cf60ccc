//! `highwater demo`: two weeks of real flights through a stream, a windowed view and a late table, through SQL that it prints.

use std::net::SocketAddr;
use std::sync::Arc;

use datafusion::arrow::util::pretty::pretty_format_batches;
use futures::TryStreamExt;
use highwater::config::{Config, Given};
use highwater::error::{Error, Result};
use highwater::server::Server;
use highwater::session::outcome::Outcome;
use highwater::session::{ConnectionInfo, Session};

/// What is created, in order.
const CREATE: [(&str, &str); 2] = [
    (
        "A stream: departures out of New York, in the order the aircraft left. The scheduled time is the event time, so a\n-- delayed flight is a late record. The file is inside this binary (CC0, US Bureau of Transportation Statistics).",
        "CREATE STREAM IF NOT EXISTS departures (
  departed_at TIMESTAMP, scheduled_at TIMESTAMP, carrier TEXT, flight INT, tailnum TEXT,
  origin TEXT, dest TEXT, dep_delay_min INT, arr_delay_min INT, distance_mi INT,
  WATERMARK FOR scheduled_at AS scheduled_at - INTERVAL '30 minutes'
) WITH (connector = 'file', path = 'sample:flights', format = 'csv')",
    ),
    (
        "A view that is kept up to date, hour by hour and airport by airport. What comes too late goes to a table.",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS departures_per_hour AS
SELECT window_start, window_end, origin, count(*) AS flights, avg(dep_delay_min) AS avg_delay_min
FROM TUMBLE(departures, scheduled_at, INTERVAL '1 hour')
GROUP BY window_start, window_end, origin
ALLOWED LATENESS INTERVAL '1 hour'
LATE DATA INTO late_departures",
    ),
];

/// What is asked, in order.
const ASK: [(&str, &str); 4] = [
    (
        "The busiest hours.",
        "SELECT window_start, origin, flights, round(avg_delay_min, 1) AS avg_delay_min
FROM departures_per_hour ORDER BY flights DESC, window_start, origin LIMIT 5",
    ),
    (
        "Flights that came too late for their hour, by carrier: no row vanishes.",
        "SELECT carrier, count(*) AS flights, max(lateness_by) AS latest_by, max(dep_delay_min) AS worst_delay_min
FROM late_departures GROUP BY carrier ORDER BY flights DESC, carrier LIMIT 5",
    ),
    (
        "Rows in = on time + late + rejected, at every moment.",
        "SELECT reason, rows FROM hw_catalog.late_records ORDER BY rows DESC",
    ),
    ("How it runs, and what bounds its state.", "EXPLAIN MATERIALIZED VIEW departures_per_hour"),
];

/// The demo's own directory, unless another is named; a free port if the default one is taken is the user's to choose.
pub fn config(mut given: Given) -> Result<Config> {
    if given.data.is_none() {
        given.data = Some(std::env::temp_dir().join(format!("highwater-demo-{}", std::process::id())));
    }
    Config::load(given, None)
}

/// Creates, loads, asks, and says how to go on.
pub async fn show(server: &Arc<Server>, address: SocketAddr) -> Result<()> {
    let session = server.connect(ConnectionInfo { user: "demo".into(), ..ConnectionInfo::default() })?;
    for (why, sql) in CREATE {
        say(why, sql);
        run(&session, sql).await?;
    }
    say("Wait until the file has been read.", "FLUSH");
    run(&session, "FLUSH").await?;
    for (why, sql) in ASK {
        say(why, sql);
        println!("{}\n", run(&session, sql).await?);
    }
    println!(
        "The server stays up. In another terminal:\n\n  psql -h {} -p {}\n\nThen try \\d, or INSERT into a table of your own. Ctrl-C stops it.",
        address.ip(),
        address.port()
    );
    Ok(())
}

fn say(why: &str, sql: &str) {
    println!("-- {why}\n{sql};\n");
}

async fn run(session: &Session, sql: &str) -> Result<String> {
    let mut shown = String::new();
    for prepared in session.parse(sql)? {
        if let Outcome::Rows(rows) = session.execute(&prepared, Vec::new()).await? {
            let batches: Vec<_> = rows.stream.try_collect().await.map_err(Error::from)?;
            shown = pretty_format_batches(&batches).map_err(Error::from)?.to_string();
        }
    }
    Ok(shown)
}

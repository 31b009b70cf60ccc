//! The full flights file (gzip) through a windowed view, against DataFusion's own batch GROUP BY over the same file in the
//! same process: the batch is the limit, since it neither keeps rows, nor judges lateness, nor survives a crash.
//!
//! `cargo bench --bench flights [-- PATH]`; PATH defaults to the file named by `HIGHWATER_FLIGHTS`, else the sample.

#![allow(clippy::disallowed_methods, reason = "measuring time is what a bench is for")]

use std::sync::Arc;
use std::time::Instant;

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::prelude::{CsvReadOptions, SessionContext};
use highwater::config::Config;
use highwater::server::Server;
use highwater::session::outcome::Outcome;
use highwater::session::{ConnectionInfo, Session};
use highwater::types::time::SystemClock;

/// Runs of each; the median counts.
const RUNS: usize = 5;

const COLUMNS: &str =
    "departed_at TIMESTAMP, scheduled_at TIMESTAMP, carrier TEXT, flight INT, tailnum TEXT, origin TEXT, dest TEXT,
 dep_delay_min INT, arr_delay_min INT, distance_mi INT";

fn main() {
    let named = std::env::args().nth(1).filter(|argument| !argument.starts_with("--"));
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/catalog/samples/flights_2013_01a.csv");
    let path = named.or_else(|| std::env::var("HIGHWATER_FLIGHTS").ok()).unwrap_or_else(|| sample.into());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (mut stream, mut batch) = (Vec::new(), Vec::new());
        let mut rows = 0;
        // In turn, so that a busy machine is busy for both.
        for _ in 0..RUNS {
            let (seconds, counted) = highwater(&path).await;
            stream.push(seconds);
            rows = counted;
            batch.push(datafusion(&path).await);
        }
        let (stream, batch) = (median(stream), median(batch));
        let rate = |seconds: f64| (rows as f64 / seconds) as u64;
        println!("rows {rows}, median of {RUNS} runs, {path}");
        println!("highwater view   {stream:>8.3} s   {:>12} rows/s", rate(stream));
        println!("datafusion batch {batch:>8.3} s   {:>12} rows/s", rate(batch));
        println!("ratio            {:>8.2} (bar: 3)", stream / batch);
    });
}

/// From CREATE to the last row visible; every epoch durable before it is visible.
async fn highwater(path: &str) -> (f64, i64) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let config = Config { data: folder.path().into(), ..Config::default() };
    let runtime = tokio::runtime::Handle::current();
    let server =
        tokio::task::block_in_place(|| Server::start(config, Arc::new(SystemClock), &runtime)).expect("a server");
    let session = server.connect(ConnectionInfo::default()).expect("a session");
    let start = Instant::now();
    let stream = format!(
        "CREATE STREAM departures ({COLUMNS}, WATERMARK FOR scheduled_at AS scheduled_at - INTERVAL '30 minutes') WITH (connector = 'file', path = '{path}')"
    );
    run(&session, &stream).await;
    run(&session, "CREATE MATERIALIZED VIEW v AS SELECT window_start, window_end, origin, count(*) AS flights, avg(dep_delay_min) AS delay
        FROM TUMBLE(departures, scheduled_at, INTERVAL '1 hour') GROUP BY window_start, window_end, origin LATE DATA INTO late").await;
    run(&session, "FLUSH").await;
    let seconds = start.elapsed().as_secs_f64();
    let counted = run(&session, "SELECT count(*) FROM departures").await;
    drop(session);
    server.control().shutdown().await.expect("a clean stop");
    (seconds, counted)
}

/// The same grouping as one batch query over the same file, parsing included.
async fn datafusion(path: &str) -> f64 {
    let context = SessionContext::new();
    let start = Instant::now();
    let gzip = path.ends_with(".gz");
    let compression = if gzip { FileCompressionType::GZIP } else { FileCompressionType::UNCOMPRESSED };
    let ending = if gzip { ".csv.gz" } else { ".csv" };
    let options = CsvReadOptions::new().file_compression_type(compression).file_extension(ending);
    context.register_csv("departures", path, options).await.expect("the file is CSV");
    let frame = context
        .sql("SELECT date_bin(INTERVAL '1 hour', scheduled_at) AS w, origin, count(*), avg(dep_delay_min) FROM departures GROUP BY w, origin")
        .await
        .expect("a plan");
    frame.collect().await.expect("a result");
    start.elapsed().as_secs_f64()
}

/// Runs a statement; returns the first number of its result.
async fn run(session: &Session, sql: &str) -> i64 {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int64Type;
    use futures::TryStreamExt;
    let mut number = 0;
    for prepared in session.parse(sql).expect("parses") {
        if let Outcome::Rows(rows) = session.execute(&prepared, Vec::new()).await.expect("runs") {
            let batches: Vec<_> = rows.stream.try_collect().await.expect("rows");
            number = batches.first().map_or(0, |batch| batch.column(0).as_primitive::<Int64Type>().value(0));
        }
    }
    number
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

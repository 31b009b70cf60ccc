//! The known answers of the flights data, in every way they can be asked for: both files, both lateness values, through the
//! file source and through COPY, with 1 and 2 shards, steps of 1, 7 and 65,536 rows, and with a SIGKILL in the middle.
//!
//! The answers come from a row-by-row reference: watermark = max(scheduled_at) - 30 minutes, hourly windows, a row is late
//! when window_end + lateness <= watermark before it.

use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::Client;

use super::server::{Server, block_on, rows};

struct Answer {
    on_time: u64,
    late: u64,
    /// Rows of the view and sum of the late rows' delays, where the reference has them.
    view: Option<(u64, i64)>,
}

/// Lateness in minutes, answer. The sample in the binary: departures before 16 January.
const SAMPLE: [(u32, Answer); 2] = [
    (0, Answer { on_time: 12_178, late: 705, view: Some((788, 70_721)) }),
    (60, Answer { on_time: 12_707, late: 176, view: None }),
];

/// The whole year, where the data is at hand.
const YEAR: [(u32, Answer); 2] = [
    (0, Answer { on_time: 299_095, late: 29_426, view: Some((19_398, 3_273_128)) }),
    (60, Answer { on_time: 318_995, late: 9_526, view: None }),
];

#[test]
fn sample_through_the_file_source() {
    block_on(async {
        for (step_rows, shards, backend) in
            [("1", "1", "sled"), ("7", "2", "memory"), ("65536", "2", "sled"), ("65536", "1", "memory")]
        {
            let server =
                Server::start(&["--step-rows", step_rows, "--parallelism", shards, "--state-backend", backend]);
            let client = server.connect().await;
            create_stream(&client, Some("sample:flights")).await;
            create_views(&client).await;
            rows(&client, "FLUSH").await;
            check(&client, &SAMPLE).await;
            // A bounded file ends with the watermark at the end of time, which closes every window.
            assert_eq!(rows(&client, "SELECT count(*) FROM v0_close").await, [["788"]]);
        }
    });
}

#[test]
fn sample_through_copy() {
    block_on(async {
        for (step_rows, shards) in [("1", "2"), ("7", "1"), ("65536", "2")] {
            let server = Server::start(&["--step-rows", step_rows, "--parallelism", shards]);
            let client = server.connect().await;
            create_stream(&client, None).await;
            create_views(&client).await;
            copy(&client, include_bytes!("../catalog/samples/flights_2013_01a.csv")).await;
            check(&client, &SAMPLE).await;
            // The watermark stands where the last row left it.
            assert_eq!(rows(&client, "SELECT count(*) FROM v0_close").await, [["782"]]);
        }
    });
}

#[test]
fn views_made_after_the_rows_give_the_same_verdicts() {
    block_on(async {
        let server = Server::start(&["--step-rows", "1000"]);
        let client = server.connect().await;
        create_stream(&client, None).await;
        copy(&client, include_bytes!("../catalog/samples/flights_2013_01a.csv")).await;
        rows(&client, "CHECKPOINT").await;
        create_views(&client).await;
        check(&client, &SAMPLE).await;
        assert_eq!(rows(&client, "SELECT count(*) FROM v0_close").await, [["782"]]);
    });
}

#[test]
fn sample_with_kills_in_the_middle() {
    block_on(async {
        let mut server = Server::start(&["--checkpoint-interval-ms", "5", "--step-rows", "700"]);
        let client = server.connect().await;
        create_stream(&client, None).await;
        create_views(&client).await;
        let text = include_str!("../catalog/samples/flights_2013_01a.csv");
        let (header, body) = text.split_once('\n').expect("a header");
        let lines: Vec<&str> = body.lines().collect();
        for (number, piece) in lines.chunks(1_300).enumerate() {
            let client = server.connect().await;
            copy(&client, format!("{header}\n{}\n", piece.join("\n")).as_bytes()).await;
            if number % 3 == 1 {
                rows(&client, "CHECKPOINT").await;
            }
            server.kill();
            server.restart();
        }
        let client = server.connect().await;
        check(&client, &SAMPLE).await;
        assert_eq!(rows(&client, "SELECT count(*) FROM v0_close").await, [["782"]]);
    });
}

#[test]
fn a_file_source_goes_on_after_a_kill() {
    block_on(async {
        // Rows come one block at a time; the kill comes as soon as the server has said that the stream exists.
        let mut server = Server::start(&["--checkpoint-interval-ms", "1", "--step-rows", "50"]);
        let client = server.connect().await;
        create_stream(&client, Some("sample:flights")).await;
        create_views(&client).await;
        server.kill();
        server.restart();
        let client = server.connect().await;
        rows(&client, "FLUSH").await;
        check(&client, &SAMPLE).await;
        server.kill();
        server.restart();
        let client = server.connect().await;
        check(&client, &SAMPLE).await;
    });
}

#[test]
fn year_through_file_and_copy() {
    let Some(path) = year() else {
        // The year is not shipped with the source; the sample covers the same code.
        return;
    };
    block_on(async {
        let server = Server::start(&[]);
        let client = server.connect().await;
        create_stream(&client, Some(&path.display().to_string())).await;
        create_views(&client).await;
        rows(&client, "FLUSH").await;
        check(&client, &YEAR).await;
        assert_eq!(rows(&client, "SELECT count(*) FROM v0_close").await, [["19398"]]);

        let server = Server::start(&["--parallelism", "1", "--step-rows", "10000"]);
        let client = server.connect().await;
        create_stream(&client, None).await;
        create_views(&client).await;
        let mut text = Vec::new();
        let file = std::fs::File::open(&path).expect("found above");
        flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text).expect("gzip");
        copy(&client, &text).await;
        check(&client, &YEAR).await;
        assert_eq!(rows(&client, "SELECT count(*) FROM v0_close").await, [["19396"]]);
    });
}

/// The year's file, beside the source or where `HIGHWATER_FLIGHTS` says.
fn year() -> Option<PathBuf> {
    let named = std::env::var_os("HIGHWATER_FLIGHTS").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/flights_2013.csv.gz");
    named.or(Some(beside)).filter(|path| path.exists())
}

async fn create_stream(client: &Client, path: Option<&str>) {
    let connector = path.map_or(String::new(), |path| format!(" WITH (connector = 'file', path = '{path}')"));
    let sql = format!(
        "CREATE STREAM departures (departed_at TIMESTAMP, scheduled_at TIMESTAMP, carrier TEXT, flight INT, tailnum TEXT,
         origin TEXT, dest TEXT, dep_delay_min INT, arr_delay_min INT, distance_mi INT,
         WATERMARK FOR scheduled_at AS scheduled_at - INTERVAL '30 minutes'){connector}"
    );
    rows(client, &sql).await;
}

/// For both lateness values: on update, and on window close.
async fn create_views(client: &Client) {
    for minutes in [0, 60] {
        let query = "SELECT window_start, window_end, origin, count(*) AS flights, avg(dep_delay_min) AS delay, sum(distance_mi) AS miles
                     FROM TUMBLE(departures, scheduled_at, INTERVAL '1 hour') GROUP BY window_start, window_end, origin";
        let lateness = format!("ALLOWED LATENESS INTERVAL '{minutes} minutes'");
        rows(
            client,
            &format!("CREATE MATERIALIZED VIEW v{minutes} AS {query} {lateness} LATE DATA INTO late{minutes}"),
        )
        .await;
        rows(client, &format!("CREATE MATERIALIZED VIEW v{minutes}_close AS {query} EMIT ON WINDOW CLOSE {lateness}"))
            .await;
    }
}

async fn copy(client: &Client, csv: &[u8]) {
    let sink = client.copy_in("COPY departures FROM STDIN WITH (FORMAT csv, HEADER true)").await.expect("COPY starts");
    let mut sink = std::pin::pin!(sink);
    for piece in csv.chunks(100_000) {
        sink.send(Bytes::copy_from_slice(piece)).await.expect("COPY takes data");
    }
    sink.finish().await.expect("COPY ends");
}

async fn check(client: &Client, answers: &[(u32, Answer)]) {
    for (minutes, answer) in answers {
        let counts = rows(client, &format!(
            "SELECT reason, rows FROM hw_catalog.late_records WHERE view = 'v{minutes}' AND rows > 0 ORDER BY reason"
        )).await;
        assert_eq!(counts, [["late", &answer.late.to_string()], ["on-time", &answer.on_time.to_string()]]);
        let view = rows(client, &format!("SELECT sum(flights), count(*) FROM v{minutes}")).await;
        let late = rows(client, &format!("SELECT count(*), sum(dep_delay_min) FROM late{minutes}")).await;
        assert_eq!(view[0][0], answer.on_time.to_string());
        assert_eq!(late[0][0], answer.late.to_string());
        if let Some((groups, delays)) = answer.view {
            assert_eq!((view[0][1].clone(), late[0][1].clone()), (groups.to_string(), delays.to_string()));
        }
        // Window by window, what the view counts and what is in the late table are together the batch query over all rows.
        let differences = rows(
            client,
            &format!(
                "SELECT count(*) FROM (
                   SELECT window_start, origin, sum(flights) AS flights, sum(miles) AS miles FROM (
                     SELECT window_start, origin, flights, miles FROM v{minutes}
                     UNION ALL SELECT window_start, origin, count(*), sum(distance_mi) FROM late{minutes} GROUP BY window_start, origin
                   ) AS parts GROUP BY window_start, origin
                   EXCEPT SELECT window_start, origin, count(*), sum(distance_mi)
                   FROM TUMBLE(departures, scheduled_at, INTERVAL '1 hour') GROUP BY window_start, origin
                 ) AS difference"
            ),
        )
        .await;
        assert_eq!(differences, [["0"]], "lateness {minutes}");
    }
}

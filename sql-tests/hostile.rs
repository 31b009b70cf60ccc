//! Bad input gets a clear error or a side-table row; nothing is lost, and the server stays up.

use std::io::Write;

use bytes::Bytes;
use futures::SinkExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres::Client;

use super::server::{Server, block_on, describe, rows, try_rows};

const STREAM: &str = "CREATE STREAM s (at TIMESTAMP, n INT, WATERMARK FOR at AS at - INTERVAL '5 seconds')";
const VIEW: &str = "CREATE MATERIALIZED VIEW v AS SELECT window_start, count(*) AS c
    FROM TUMBLE(s, at, INTERVAL '1 minute') GROUP BY window_start LATE DATA INTO late";

#[test]
fn garbage_on_the_socket() {
    block_on(async {
        let mut server = Server::start(&[]);
        let mut random = fastrand::Rng::with_seed(3);
        for round in 0..60 {
            let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", server.port())).await.expect("connects");
            let bytes: Vec<u8> = match round % 4 {
                0 => (0..random.usize(1..400)).map(|_| random.u8(..)).collect(),
                // A startup packet that claims two gigabytes.
                1 => vec![0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0],
                // Half a startup packet.
                2 => vec![0, 0, 0, 80, 0, 3, 0, 0, b'u', b's'],
                // A proper start, then noise.
                _ => {
                    let start = b"\0\0\0\x13\0\x03\0\0user\0test\0\0".to_vec();
                    start.into_iter().chain((0..200).map(|_| random.u8(..))).collect()
                }
            };
            let _ = socket.write_all(&bytes).await;
            let _ = socket.shutdown().await;
            let mut answer = Vec::new();
            let _ = socket.read_to_end(&mut answer).await;
        }
        assert!(server.alive());
        assert_eq!(rows(&server.connect().await, "SELECT 1").await, [["1"]]);
    });
}

#[test]
fn a_statement_of_100_megabytes() {
    block_on(async {
        let mut server = Server::start(&[]);
        let client = server.connect().await;
        let text = format!("SELECT '{}'", "x".repeat(100 << 20));
        assert!(client.simple_query(&text).await.is_err());
        assert!(server.alive());
        assert_eq!(rows(&server.connect().await, "SELECT 1").await, [["1"]]);
    });
}

#[test]
fn lines_that_are_no_rows() {
    block_on(async {
        let server = Server::start(&[]);
        let client = server.connect().await;
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(b"at,n\n2026-01-01 00:00:00,1\nnonsense,2\n2026-01-01 00:00:01,x\n2026-01-01 00:00:02\n,5\n2026-01-01 00:00:03,4\n")
            .expect("writes");
        let with = format!("{STREAM} WITH (connector = 'file', path = '{}')", file.path().display());
        rows(&client, &with).await;
        rows(&client, VIEW).await;
        rows(&client, "FLUSH").await;
        assert_eq!(rows(&client, "SELECT c FROM v").await, [["2"]]);
        let errors = rows(&client, "SELECT line, message FROM hw_catalog.row_errors ORDER BY line").await;
        assert_eq!(
            errors,
            [
                ["3", "column \"at\": invalid input syntax for type timestamp: \"nonsense\""],
                ["4", "column \"n\": invalid input syntax for type integer: \"x\""],
                ["5", "missing data for column \"n\""],
            ]
        );
        assert_eq!(rows(&client, "SELECT rows, rows_rejected FROM hw_catalog.watermarks").await, [["3", "3"]]);
        // The row without a time is in no window, and not lost.
        assert_eq!(rows(&client, "SELECT n, reason FROM late").await, [["5", "null_event_time"]]);
    });
}

#[test]
fn copy_takes_all_lines_or_none() {
    block_on(async {
        let server = Server::start(&[]);
        let client = server.connect().await;
        rows(&client, STREAM).await;
        let error = copy(&client, "2026-01-01 00:00:00,1\n2026-01-01 00:00:01,zwei\n").await.expect_err("a bad line");
        assert!(error.contains("line 2") && error.contains("zwei"), "{error}");
        assert_eq!(rows(&client, "SELECT count(*) FROM s").await, [["0"]]);
        assert_eq!(copy(&client, "2026-01-01 00:00:00,1\n2026-01-01 00:00:01,\n").await, Ok(2));
        assert_eq!(rows(&client, "SELECT count(*), count(n) FROM s").await, [["2", "1"]]);
    });
}

#[test]
fn a_time_far_ahead_is_bounded_by_future_skew() {
    block_on(async {
        let server = Server::start(&[]);
        let client = server.connect().await;
        rows(&client, &STREAM.replace("'5 seconds'", "'5 seconds' MAX FUTURE SKEW INTERVAL '1 day'")).await;
        rows(&client, VIEW).await;
        rows(&client, "INSERT INTO s VALUES ('9999-12-31 23:59:59', 1), ('2026-01-01 00:00:00', 2)").await;
        assert_eq!(rows(&client, "SELECT count(*) FROM v").await, [["2"]]);
        assert_eq!(rows(&client, "SELECT rows_skewed FROM hw_catalog.watermarks").await, [["1"]]);
        assert_eq!(rows(&client, "SELECT count(*) FROM late").await, [["0"]]);
    });
}

#[test]
fn a_followed_file_grows() {
    block_on(async {
        let server = Server::start(&[]);
        let client = server.connect().await;
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(b"at,n\n2026-01-01 00:00:00,1\n").expect("writes");
        let with = format!("{STREAM} WITH (connector = 'file', path = '{}', follow = true)", file.path().display());
        rows(&client, &with).await;
        rows(&client, "FLUSH").await;
        assert_eq!(rows(&client, "SELECT count(*) FROM s").await, [["1"]]);
        // An unfinished line waits for its newline.
        file.write_all(b"2026-01-01 00:00:01,2\n2026-01-01 00:0").expect("writes");
        rows(&client, "FLUSH").await;
        assert_eq!(rows(&client, "SELECT count(*) FROM s").await, [["2"]]);
        file.write_all(b"0:02,3\n").expect("writes");
        rows(&client, "FLUSH").await;
        assert_eq!(rows(&client, "SELECT count(*), sum(n) FROM s").await, [["3", "6"]]);
    });
}

#[test]
fn what_cannot_be_says_why_and_leaves_nothing() {
    block_on(async {
        let server = Server::start(&[]);
        let client = server.connect().await;
        for (sql, state, words) in [
            ("CREATE STREAM t (a TEXT, WATERMARK FOR a AS a - INTERVAL '1 second')", "42804", "must be a timestamp"),
            (
                "CREATE STREAM t (a INT) WITH (connector = 'file', path = '/nowhere/at/all.csv')",
                "22023",
                "does not exist",
            ),
            ("CREATE STREAM t (a INT) WITH (connector = 'carrier-pigeon')", "22023", "connector"),
            ("SELECT nope FROM hw_catalog.relations", "42703", "nope"),
            ("SELECT 1 FROM nope", "42P01", "nope"),
            ("SELEC 1", "42601", "SELEC"),
        ] {
            let error = try_rows(&client, sql).await.expect_err(sql);
            let text = describe(&error);
            assert!(text.starts_with(state) && text.contains(words), "{sql}: {text}");
        }
        rows(&client, STREAM).await;
        let hop = "CREATE MATERIALIZED VIEW w AS SELECT window_start, count(*) FROM HOP(s, at, INTERVAL '0 seconds', INTERVAL '1 minute') GROUP BY window_start";
        assert!(describe(&try_rows(&client, hop).await.expect_err("a hop of zero")).contains("greater than zero"));
        assert_eq!(rows(&client, "SELECT name FROM hw_catalog.relations").await, [["s"]]);
    });
}

async fn copy(client: &Client, csv: &str) -> Result<u64, String> {
    let sink = client.copy_in("COPY s FROM STDIN WITH (FORMAT csv)").await.map_err(|error| describe(&error))?;
    let mut sink = std::pin::pin!(sink);
    let _ = sink.send(Bytes::copy_from_slice(csv.as_bytes())).await;
    sink.finish().await.map_err(|error| describe(&error))
}

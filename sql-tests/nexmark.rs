//! Nexmark queries as views, against answers on which two other engines agree (20,000 events). Runs where that data is at hand.

use std::path::{Path, PathBuf};

use super::server::{Server, block_on, rows};

const WATERMARK: &str = "WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND";

const STREAMS: [(&str, &str); 3] = [
    (
        "person",
        "id BIGINT, name TEXT, email_address TEXT, credit_card TEXT, city TEXT, state TEXT, date_time TIMESTAMP, extra TEXT",
    ),
    (
        "auction",
        "id BIGINT, item_name TEXT, description TEXT, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra TEXT",
    ),
    ("bid", "auction BIGINT, bidder BIGINT, price BIGINT, channel TEXT, url TEXT, date_time TIMESTAMP, extra TEXT"),
];

const QUERIES: [(&str, &str); 8] = [
    ("q2", "SELECT auction, price FROM bid WHERE auction % 123 = 0"),
    (
        "q3",
        "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
         WHERE a.category = 10 AND p.state IN ('or', 'id', 'ca')",
    ),
    (
        "q5",
        "SELECT c.auction, c.num, c.window_start, c.window_end FROM (
           SELECT auction, count(*) AS num, window_start, window_end
           FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY auction, window_start, window_end
         ) AS c JOIN (
           SELECT max(num) AS max_num, window_start, window_end FROM (
             SELECT auction, count(*) AS num, window_start, window_end
             FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY auction, window_start, window_end
           ) AS d GROUP BY window_start, window_end
         ) AS m ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.max_num",
    ),
    (
        "q7",
        "SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b JOIN (
           SELECT max(price) AS max_price, window_end AS end_time FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND)
           GROUP BY window_start, window_end
         ) AS m ON b.price = m.max_price WHERE b.date_time BETWEEN m.end_time - INTERVAL '10' SECOND AND m.end_time",
    ),
    (
        "q8",
        "SELECT p.id, p.name, p.window_start FROM (
           SELECT id, name, window_start, window_end FROM TUMBLE(person, date_time, INTERVAL '10' SECOND)
           GROUP BY id, name, window_start, window_end
         ) AS p JOIN (
           SELECT seller, window_start, window_end FROM TUMBLE(auction, date_time, INTERVAL '10' SECOND)
           GROUP BY seller, window_start, window_end
         ) AS a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end",
    ),
    (
        "q12",
        "SELECT bidder, count(*) AS bid_count, window_start, window_end FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND)
         GROUP BY bidder, window_start, window_end",
    ),
    (
        "q17",
        "SELECT auction, dt, total_bids, rank1_bids, rank2_bids, rank3_bids, min_price, max_price,
           CAST(floor(average) AS BIGINT) AS avg_price, sum_price
         FROM (
           SELECT auction, CAST(date_time AS DATE) AS dt, count(*) AS total_bids,
             count(*) FILTER (WHERE price < 10000) AS rank1_bids,
             count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
             count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
             min(price) AS min_price, max(price) AS max_price, avg(price) AS average, sum(price) AS sum_price
           FROM bid GROUP BY auction, CAST(date_time AS DATE)
         ) AS s",
    ),
    (
        "q18",
        "SELECT auction, bidder, price, channel, url, date_time, extra FROM (
           SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS rn FROM bid
         ) AS r WHERE rn <= 1",
    ),
];

#[test]
fn answers_equal_other_engines() {
    let Some(folder) = oracle() else { return };
    block_on(async {
        for (step_rows, shards) in [("65536", "2"), ("100", "1")] {
            let server = Server::start(&["--step-rows", step_rows, "--parallelism", shards]);
            let client = server.connect().await;
            for (name, columns) in STREAMS {
                let path = folder.join("input").join(format!("{name}.csv"));
                let with = format!("connector = 'file', header = false, path = '{}'", path.display());
                rows(&client, &format!("CREATE STREAM {name} ({columns}, {WATERMARK}) WITH ({with})")).await;
            }
            for (name, query) in QUERIES {
                rows(&client, &format!("CREATE MATERIALIZED VIEW {name} AS {query}")).await;
            }
            rows(&client, "FLUSH").await;
            for (name, _) in QUERIES {
                let mut kept = rows(&client, &format!("SELECT * FROM {name}")).await;
                // The file's empty filler column is NULL here and nothing there.
                kept.iter_mut().flatten().filter(|value| *value == "NULL").for_each(String::clear);
                kept.sort();
                assert!(
                    kept == answer(&folder, name),
                    "{name}, steps of {step_rows}, {shards} shards: {} rows differ from the answer",
                    kept.len()
                );
            }
        }
    });
}

/// Where the answers are: beside the source, or where `HIGHWATER_ORACLE` says.
fn oracle() -> Option<PathBuf> {
    let named = std::env::var_os("HIGHWATER_ORACLE").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/bench/oracle");
    named.or(Some(beside)).filter(|path| path.exists())
}

/// The stored rows, sorted, with times as Postgres writes them. No value of these answers has a comma or a quote.
fn answer(folder: &Path, name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder.join("expected").join(format!("{name}.csv"))).expect("an answer");
    let mut rows: Vec<Vec<String>> = text.lines().skip(1).map(|line| line.split(',').map(plain).collect()).collect();
    rows.sort();
    rows
}

/// `2024-01-01 00:00:06.910` as `2024-01-01 00:00:06.91`; other fields stay.
fn plain(field: &str) -> String {
    let is_time = field.len() == 23 && field.as_bytes()[10] == b' ' && field.as_bytes()[19] == b'.';
    if is_time { field.trim_end_matches('0').trim_end_matches('.').to_string() } else { field.to_string() }
}

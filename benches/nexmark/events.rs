//! Nexmark events as CSV: one file a stream, without a header, in the order of event time. The same arguments give the same
//! bytes, since every event is seeded by its own number.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use nexmark::event::Event;

/// Event time of the first event: 2024-01-01 in UTC, in milliseconds since 1970.
const BASE_MS: u64 = 1_704_067_200_000;

/// Events at this rate per second of event time, with rows of the benchmark's usual sizes.
pub fn config(rate: usize) -> NexmarkConfig {
    NexmarkConfig { base_time: BASE_MS, first_rate: rate, next_rate: rate, ..NexmarkConfig::default() }
}

/// Writes `person.csv`, `auction.csv` and `bid.csv` of this many events into a folder.
pub fn write(folder: &Path, events: usize, config: NexmarkConfig) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let create = |name: &str| Ok::<_, io::Error>(BufWriter::with_capacity(1 << 20, File::create(folder.join(name))?));
    let (mut person, mut auction, mut bid) = (create("person.csv")?, create("auction.csv")?, create("bid.csv")?);
    for event in EventGenerator::new(config).take(events) {
        match event {
            Event::Person(p) => writeln!(
                person,
                "{},{},{},{},{},{},{},{}",
                p.id,
                p.name,
                p.email_address,
                p.credit_card,
                p.city,
                p.state,
                time(p.date_time),
                p.extra
            ),
            Event::Auction(a) => writeln!(
                auction,
                "{},{},{},{},{},{},{},{},{},{}",
                a.id,
                a.item_name,
                a.description,
                a.initial_bid,
                a.reserve,
                time(a.date_time),
                time(a.expires),
                a.seller,
                a.category,
                a.extra
            ),
            Event::Bid(b) => writeln!(
                bid,
                "{},{},{},{},{},{},{}",
                b.auction,
                b.bidder,
                b.price,
                b.channel,
                b.url,
                time(b.date_time),
                b.extra
            ),
        }?;
    }
    [person, auction, bid].iter_mut().try_for_each(Write::flush)
}

fn time(ms: u64) -> impl std::fmt::Display {
    let at = chrono::DateTime::from_timestamp_millis(ms as i64).expect("the generator stays in this century");
    at.format("%Y-%m-%d %H:%M:%S%.3f")
}

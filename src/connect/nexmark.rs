//! `connector = 'nexmark'`: persons, auctions and bids of the Nexmark benchmark (Tucker et al., "NEXMark: A Benchmark for
//! Queries over Data Streams", 2002), from the generator that RisingWave publishes. Every event is seeded by its own number:
//! the same number is the same row, whatever the batches. The position is the next event's number.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::{self, CastOptions};
use arrow::datatypes::{DataType, SchemaRef};
use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use nexmark::event::{Event, EventType};

use super::format::field;
use super::{Connector, Options, Polled, Position, Source, SourceBatch};
use crate::error::{Error, Kind, Result};
use crate::types::time::{Stopwatch, timestamp_type};

/// The connector.
pub static NEXMARK: NexmarkConnector = NexmarkConnector;

/// Generates events.
#[derive(Debug)]
pub struct NexmarkConnector;

/// How a column is read off an event.
#[derive(Clone, Copy)]
enum Getter {
    Number(fn(&Event) -> Option<i64>),
    Text(fn(&Event) -> Option<&str>),
    /// Milliseconds since 1970.
    Time(fn(&Event) -> Option<u64>),
}

macro_rules! getter {
    ($kind:ident, $event:ident . $field:ident as i64) => {
        Getter::$kind(|event| if let Event::$event(it) = event { Some(it.$field as i64) } else { None })
    };
    ($kind:ident, $event:ident . $field:ident as text) => {
        Getter::$kind(|event| if let Event::$event(it) = event { Some(it.$field.as_str()) } else { None })
    };
    ($kind:ident, $event:ident . $field:ident) => {
        Getter::$kind(|event| if let Event::$event(it) = event { Some(it.$field) } else { None })
    };
}

static PERSON: &[(&str, Getter)] = &[
    ("id", getter!(Number, Person.id as i64)),
    ("name", getter!(Text, Person.name as text)),
    ("email_address", getter!(Text, Person.email_address as text)),
    ("credit_card", getter!(Text, Person.credit_card as text)),
    ("city", getter!(Text, Person.city as text)),
    ("state", getter!(Text, Person.state as text)),
    ("date_time", getter!(Time, Person.date_time)),
    ("extra", getter!(Text, Person.extra as text)),
];

static AUCTION: &[(&str, Getter)] = &[
    ("id", getter!(Number, Auction.id as i64)),
    ("item_name", getter!(Text, Auction.item_name as text)),
    ("description", getter!(Text, Auction.description as text)),
    ("initial_bid", getter!(Number, Auction.initial_bid as i64)),
    ("reserve", getter!(Number, Auction.reserve as i64)),
    ("date_time", getter!(Time, Auction.date_time)),
    ("expires", getter!(Time, Auction.expires)),
    ("seller", getter!(Number, Auction.seller as i64)),
    ("category", getter!(Number, Auction.category as i64)),
    ("extra", getter!(Text, Auction.extra as text)),
];

static BID: &[(&str, Getter)] = &[
    ("auction", getter!(Number, Bid.auction as i64)),
    ("bidder", getter!(Number, Bid.bidder as i64)),
    ("price", getter!(Number, Bid.price as i64)),
    ("channel", getter!(Text, Bid.channel as text)),
    ("url", getter!(Text, Bid.url as text)),
    ("date_time", getter!(Time, Bid.date_time)),
    ("extra", getter!(Text, Bid.extra as text)),
];

impl Connector for NexmarkConnector {
    fn name(&self) -> &'static str {
        "nexmark"
    }

    fn options(&self) -> &'static [&'static str] {
        &["table", "events", "rate", "base_time", "rows_per_second"]
    }

    fn open(
        &self,
        options: &Options,
        schema: &SchemaRef,
        positions: &BTreeMap<u32, Position>,
    ) -> Result<Box<dyn Source>> {
        let number = |name: &str, default: u64| match options.get(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| Error::invalid(format!("option \"{name}\" must be a whole number, not {text}"))),
        };
        let given = options.get("table").map_or("missing", String::as_str);
        let (kind, known) = table(given)
            .ok_or_else(|| Error::invalid(format!("option \"table\" must be person, auction or bid, not {given}")))?;
        let base = options.get("base_time").map_or("2024-01-01 00:00:00", String::as_str);
        let base_us = field::timestamp(base.as_bytes(), true)
            .map_err(|reason| Error::invalid(format!("option \"base_time\": {reason}")))?;
        if base_us < 0 {
            return Err(Error::invalid(format!("option \"base_time\" must not be before 1970, not {base}")));
        }
        let rate = match number("rate", 10_000)? {
            0 => return Err(Error::invalid("option \"rate\" must be at least 1, not 0")),
            rate => rate as usize,
        };
        let config = NexmarkConfig {
            base_time: (base_us / 1_000) as u64,
            first_rate: rate,
            next_rate: rate,
            ..NexmarkConfig::default()
        };
        let next = match positions.get(&0) {
            None => 0,
            Some(Position(text)) => text.parse().map_err(|_| Error::corrupted(format!("nexmark position {text}")))?,
        };
        Ok(Box::new(NexmarkSource {
            generator: EventGenerator::new(config).with_offset(next).with_type_filter(kind),
            columns: getters(schema, known)?,
            schema: Arc::clone(schema),
            events: match number("events", 0)? {
                0 => u64::MAX,
                events => events,
            },
            rows_per_second: number("rows_per_second", 0)?,
            started: Stopwatch::start(),
            made: 0,
        }))
    }
}

/// The benchmark's columns of a table, in its order; `None` if it has no such table.
pub fn columns(table_name: &str) -> Option<Vec<(&'static str, DataType)>> {
    let (_, known) = table(table_name)?;
    let column = |(name, getter): &(&'static str, Getter)| {
        let data_type = match getter {
            Getter::Number(_) => DataType::Int64,
            Getter::Text(_) => DataType::Utf8,
            Getter::Time(_) => timestamp_type(),
        };
        (*name, data_type)
    };
    Some(known.iter().map(column).collect())
}

fn table(name: &str) -> Option<(EventType, &'static [(&'static str, Getter)])> {
    match name {
        "person" => Some((EventType::Person, PERSON)),
        "auction" => Some((EventType::Auction, AUCTION)),
        "bid" => Some((EventType::Bid, BID)),
        _ => None,
    }
}

/// The getter of each declared column.
fn getters(schema: &SchemaRef, known: &'static [(&'static str, Getter)]) -> Result<Vec<Getter>> {
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    schema
        .fields()
        .iter()
        .map(|field| {
            let (_, getter) = known.iter().find(|(name, _)| field.name() == name).ok_or_else(|| {
                Error::new(Kind::UndefinedColumn, format!("the benchmark has no column \"{}\" here", field.name()))
                    .hint(format!("There are: {}.", names()))
            })?;
            let fits = match getter {
                Getter::Number(_) => matches!(field.data_type(), DataType::Int64 | DataType::Int32),
                Getter::Text(_) => *field.data_type() == DataType::Utf8,
                Getter::Time(_) => matches!(field.data_type(), DataType::Timestamp(_, _)),
            };
            if fits {
                return Ok(*getter);
            }
            let wanted = match getter {
                Getter::Number(_) => "BIGINT",
                Getter::Text(_) => "TEXT",
                Getter::Time(_) => "TIMESTAMP",
            };
            Err(Error::new(Kind::DatatypeMismatch, format!("column \"{}\" of the benchmark is {wanted}", field.name())))
        })
        .collect()
}

struct NexmarkSource {
    generator: EventGenerator,
    columns: Vec<Getter>,
    schema: SchemaRef,
    /// Events of all kinds, at most.
    events: u64,
    /// 0 is no limit.
    rows_per_second: u64,
    started: Stopwatch,
    made: u64,
}

impl Source for NexmarkSource {
    fn poll(&mut self, rows: usize) -> Result<Polled> {
        let mut wanted = rows as u64;
        if self.rows_per_second > 0 {
            let due = (u128::from(self.started.elapsed_us()) * u128::from(self.rows_per_second) / 1_000_000) as u64;
            wanted = wanted.min(due.saturating_sub(self.made));
            if wanted == 0 {
                return Ok(Polled::Quiet);
            }
        }
        let mut events = Vec::with_capacity(wanted as usize);
        while (events.len() as u64) < wanted {
            // Events are numbered over all kinds; the generator's own offset counts those of one kind.
            if self.generator.global_offset() >= self.events {
                break;
            }
            events.extend(self.generator.next());
        }
        if events.is_empty() {
            return Ok(Polled::End);
        }
        self.made += events.len() as u64;
        let position = Position(self.generator.offset().to_string());
        let arrays = self.columns.iter().zip(self.schema.fields()).map(|(getter, field)| {
            let array: ArrayRef = match getter {
                Getter::Number(of) => Arc::new(events.iter().map(of).collect::<Int64Array>()),
                Getter::Text(of) => Arc::new(events.iter().map(of).collect::<StringArray>()),
                Getter::Time(of) => Arc::new(
                    events.iter().map(|e| of(e).map(|ms| ms as i64 * 1_000)).collect::<TimestampMicrosecondArray>(),
                ),
            };
            if array.data_type() == field.data_type() {
                Ok(array)
            } else {
                // A number that an INT does not hold is an error; it must not become NULL.
                let strict = CastOptions { safe: false, ..CastOptions::default() };
                Ok(compute::cast_with_options(&array, field.data_type(), &strict)?)
            }
        });
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays.collect::<Result<_>>()?)?;
        Ok(Polled::Batch(SourceBatch { partition: 0, batches: vec![batch], bad: Vec::new(), position }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{Field, Schema};

    fn bids(sizes: &[usize], from: Option<&str>) -> (Vec<String>, String) {
        let schema = Arc::new(Schema::new(vec![
            Field::new("auction", DataType::Int64, true),
            Field::new("url", DataType::Utf8, true),
        ]));
        let options = Options::from([("table".into(), "bid".into()), ("events".into(), "1000".into())]);
        let positions = from.map(|at| (0, Position(at.into()))).into_iter().collect();
        let mut source = NEXMARK.open(&options, &schema, &positions).expect("opens");
        let (mut rows, mut position) = (Vec::new(), String::new());
        for size in sizes {
            let Polled::Batch(brought) = source.poll(*size).expect("generates") else { break };
            let batch = &brought.batches[0];
            let text = |row, column: usize| {
                arrow::util::display::array_value_to_string(batch.column(column), row).expect("printable")
            };
            rows.extend((0..batch.num_rows()).map(|row| format!("{} {}", text(row, 0), text(row, 1))));
            position = brought.position.0;
        }
        (rows, position)
    }

    #[test]
    fn the_same_event_number_is_the_same_row_whatever_the_batches() {
        let (whole, _) = bids(&[10_000], None);
        assert_eq!(whole.len(), 920);
        let (first, position) = bids(&[7, 100, 13], None);
        let (rest, _) = bids(&[10_000], Some(&position));
        assert_eq!([first, rest].concat(), whole);
    }
    #[test]
    fn a_stream_of_every_known_column_opens_and_impossible_options_do_not() {
        let declared = columns("bid").expect("a table of the benchmark");
        let fields: Vec<Field> =
            declared.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let open = |name: &str, value: &str| {
            let mut options = Options::from([("table".into(), "bid".into())]);
            options.insert(name.into(), value.into());
            NEXMARK.open(&options, &schema, &BTreeMap::new()).map(|_| ()).map_err(|error| error.kind)
        };
        assert_eq!(open("rate", "5"), Ok(()));
        for (name, value) in [("rate", "0"), ("base_time", "1969-12-31"), ("events", "-1"), ("table", "asks")] {
            assert_eq!(open(name, value), Err(Kind::InvalidParameter), "{name} = {value}");
        }
        assert_eq!(open("table", "person"), Err(Kind::UndefinedColumn));
    }
}

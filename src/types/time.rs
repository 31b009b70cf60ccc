//! Event time in microseconds since 1970 (UTC, may be negative), spans of it, watermarks, and the injected clock.

use std::fmt;

use arrow::datatypes::{DataType, TimeUnit};

/// Microseconds since 1970-01-01 00:00:00 UTC; negative before.
pub type EventTime = i64;

/// A length of event time in microseconds.
pub type Span = i64;

/// Microseconds in a second.
pub const SECOND: Span = 1_000_000;

/// The promise that no row with an event time below it is still on time. Absent until the first row: absence is a
/// state of its own, never a minimum value (pitfall ET-05).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Watermark(Option<EventTime>);

impl Watermark {
    /// Nothing is known yet.
    pub const NONE: Watermark = Watermark(None);
    /// Input has ended: everything is closed.
    pub const END: Watermark = Watermark(Some(EventTime::MAX));

    /// A watermark at this time.
    pub fn at(time: EventTime) -> Self {
        Watermark(Some(time))
    }

    /// The time, if any is known.
    pub fn time(self) -> Option<EventTime> {
        self.0
    }

    /// True once the watermark has reached `time`.
    pub fn reached(self, time: EventTime) -> bool {
        self.0.is_some_and(|watermark| time <= watermark)
    }

    /// As the hidden column stores it: `i64::MIN` for none, which reaches nothing.
    pub fn to_column(self) -> i64 {
        self.0.unwrap_or(i64::MIN)
    }

    /// From the hidden column.
    pub fn from_column(value: i64) -> Self {
        if value == i64::MIN { Watermark::NONE } else { Watermark::at(value) }
    }
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("none yet"),
            Some(EventTime::MAX) => f.write_str("end of input"),
            Some(time) => f.write_str(&display(time)),
        }
    }
}

/// `2013-01-01 10:17:00` or, with a fraction, `2013-01-01 10:17:00.25`.
pub fn display(time: EventTime) -> String {
    match chrono::DateTime::from_timestamp_micros(time) {
        Some(at) => {
            let text = at.format("%Y-%m-%d %H:%M:%S%.6f").to_string();
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
        None => format!("{time} us"),
    }
}

/// `30m`, `1h`, `1d 12h`: the largest units that fit.
pub fn display_span(span: Span) -> String {
    if span == 0 {
        return "0s".into();
    }
    let mut rest = span.unsigned_abs();
    let mut parts = Vec::new();
    for (unit, length) in
        [("d", 86_400_000_000_u64), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)]
    {
        if rest >= length {
            parts.push(format!("{}{unit}", rest / length));
            rest %= length;
        }
    }
    let text = parts.join(" ");
    if span < 0 { format!("-({text})") } else { text }
}

/// The type of TIMESTAMP columns.
pub fn timestamp_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

/// Where the present comes from. Wall time is read in one place ([`SystemClock`]) and enters the engine as input.
pub trait Clock: Send + Sync {
    /// Microseconds since 1970.
    fn now(&self) -> EventTime;
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> EventTime {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| d.as_micros() as EventTime)
    }
}

/// A monotonic reading for durations that are measured and shown, never decided upon.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
    pub fn start() -> Self {
        Stopwatch(std::time::Instant::now())
    }

    /// Microseconds since the start.
    pub fn elapsed_us(&self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }
}

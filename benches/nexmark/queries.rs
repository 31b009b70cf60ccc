//! The queries, as they stand in `queries/`: what each asks, and in which form, is at the top of its file.

/// One query.
#[derive(Debug, Clone, Copy)]
pub struct Query {
    /// Its file's name; its view has no zero in front: `q05` is the view `q5`.
    pub name: &'static str,
    /// Statements that end in a view.
    pub text: &'static str,
    /// Streams that it reads.
    pub reads: &'static [&'static str],
}

const STREAMS: &str = include_str!("queries/streams.sql");
const BID: &[&str] = &["bid"];
const ACCOUNTS: &[&str] = &["person", "auction"];
const AUCTION_BID: &[&str] = &["auction", "bid"];

macro_rules! query {
    ($name:literal, $reads:expr) => {
        Query { name: $name, text: include_str!(concat!("queries/", $name, ".sql")), reads: $reads }
    };
}

/// All of them.
pub static ALL: [Query; 23] = [
    query!("q00", BID),
    query!("q01", BID),
    query!("q02", BID),
    query!("q03", ACCOUNTS),
    query!("q04", AUCTION_BID),
    query!("q05", BID),
    query!("q06", AUCTION_BID),
    query!("q07", BID),
    query!("q08", ACCOUNTS),
    query!("q09", AUCTION_BID),
    query!("q10", BID),
    query!("q11", BID),
    query!("q12", BID),
    query!("q13", BID),
    query!("q14", BID),
    query!("q15", BID),
    query!("q16", BID),
    query!("q17", BID),
    query!("q18", BID),
    query!("q19", BID),
    query!("q20", AUCTION_BID),
    query!("q21", BID),
    query!("q22", BID),
];

impl Query {
    /// The view that answers it.
    pub fn view(&self) -> String {
        format!("q{}", self.name[1..].trim_start_matches('0').parse::<u32>().unwrap_or(0))
    }

    /// Its statements, without comments.
    pub fn statements(&self) -> Vec<String> {
        statements(self.text)
    }
}

/// The statement that creates a stream over `folder/name.csv`.
pub fn stream(name: &str, folder: &str) -> String {
    let start = format!("CREATE STREAM {name} ");
    let found = statements(STREAMS).into_iter().find(|statement| statement.starts_with(&start));
    found.expect("streams.sql has the three streams").replace("${DATA}", folder)
}

fn statements(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("--")).collect();
    lines.join("\n").split(';').map(|statement| statement.trim().to_string()).filter(|s| !s.is_empty()).collect()
}

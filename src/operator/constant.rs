//! Rows that a query brings itself: VALUES, and the one row of a query without FROM. They come out in a view's first step
//! and never again; a view that goes on from a checkpoint has had them.

use std::fmt;

use arrow::array::RecordBatch;

/// The rows.
#[derive(Debug, Clone)]
pub struct Constant {
    /// Given to the view once.
    pub rows: RecordBatch,
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rows.num_rows() {
            1 => f.write_str("Constant: 1 row"),
            rows => write!(f, "Constant: {rows} rows"),
        }
    }
}

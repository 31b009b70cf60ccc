//! One record's fields, as places in the input, or in a scratch buffer where quoting had to be undone. Reused from record to
//! record: no allocation.

use std::ops::Range;

/// The fields of the record that was read last.
#[derive(Debug, Default)]
pub struct Record {
    fields: Vec<Field>,
    scratch: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Field {
    Null,
    Input(Range<usize>),
    Scratch(Range<usize>),
}

/// What is at a place in the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// A record.
    Record {
        /// Where the next one starts.
        next: usize,
        /// Lines it spans.
        lines: u64,
    },
    /// A blank line: nothing to decode.
    Blank {
        /// Where the next record starts.
        next: usize,
    },
    /// Not a record.
    Bad {
        /// Where to go on.
        next: usize,
        /// Lines it spans.
        lines: u64,
        /// Why.
        reason: String,
    },
    /// The rest of it is not here yet.
    Incomplete,
    /// The input says that it ends.
    End,
}

impl Record {
    /// Forgets all fields.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.scratch.clear();
    }

    /// Number of fields.
    pub fn count(&self) -> usize {
        self.fields.len()
    }

    /// A field's bytes; `None` is NULL, also for fields that the record does not have.
    pub fn field<'a>(&'a self, position: usize, input: &'a [u8]) -> Option<&'a [u8]> {
        match self.fields.get(position)? {
            Field::Null => None,
            Field::Input(range) => Some(&input[range.clone()]),
            Field::Scratch(range) => Some(&self.scratch[range.clone()]),
        }
    }

    /// Appends NULL.
    pub fn null(&mut self) {
        self.fields.push(Field::Null);
    }

    /// Appends a piece of the input.
    pub fn input(&mut self, range: Range<usize>) {
        self.fields.push(Field::Input(range));
    }

    /// Appends bytes that `write` puts into the scratch buffer.
    pub fn scratch(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.scratch.len();
        write(&mut self.scratch);
        self.fields.push(Field::Scratch(start..self.scratch.len()));
    }
}

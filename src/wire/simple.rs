//! The simple protocol: a text of statements, run in order until one fails. Rows come as text.

use pgwire::messages::response::EmptyQueryResponse;

use super::connection::Connection;
use super::error::Failure;
use super::rows::Cursor;
use super::types::Format;
use crate::session::outcome::Outcome;

impl Connection<'_> {
    /// Runs every statement of the text. The caller says ReadyForQuery, whatever came of it.
    pub(super) async fn query(&mut self, text: &str) -> Result<(), Failure> {
        // As in Postgres, a simple query replaces what the unnamed statement and portal were.
        self.statements.remove("");
        self.portals.remove("");
        let statements = self.session.parse(text)?;
        if statements.is_empty() {
            self.send_notices();
            self.writer.send(EmptyQueryResponse::new());
        }
        for prepared in statements {
            let outcome = self.interrupts.statement(self.session.execute(&prepared, Vec::new())).await?;
            self.send_notices();
            match outcome {
                Outcome::Rows(rows) => {
                    let mut cursor = Cursor::new(rows, &[Format::Text])?;
                    self.writer.send(cursor.description());
                    self.send_rows(&mut cursor, None).await?;
                }
                Outcome::Done { tag, transaction } => self.complete(tag, transaction),
                Outcome::CopyIn(copy) => self.copy_in(&copy).await?,
                Outcome::Empty => self.writer.send(EmptyQueryResponse::new()),
            }
        }
        Ok(())
    }
}

//! The end of a statement: its tag, and what else the client must know then.

use pgwire::messages::response::{CommandComplete, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;

use super::connection::Connection;
use crate::session::outcome::TransactionChange;

impl Connection<'_> {
    /// A statement without rows is done.
    pub(super) fn complete(&mut self, tag: String, transaction: TransactionChange) {
        match transaction {
            TransactionChange::Unchanged => {}
            TransactionChange::Begun => self.status = TransactionStatus::Transaction,
            TransactionChange::Ended => {
                self.status = TransactionStatus::Idle;
                self.portals.clear();
            }
        }
        match tag.as_str() {
            "SET" | "RESET" => self.report_settings(),
            "DISCARD ALL" => {
                self.statements.clear();
                self.portals.clear();
                self.report_settings();
            }
            "DEALLOCATE ALL" => self.statements.clear(),
            _ => {}
        }
        self.writer.send(CommandComplete::new(tag));
    }

    /// Drivers and poolers follow some settings; they are told when one changes.
    fn report_settings(&mut self) {
        let now = self.session.parameter_statuses();
        for (name, value) in now.iter().filter(|setting| !self.reported.contains(setting)) {
            self.writer.send(ParameterStatus::new(name.clone(), value.clone()));
        }
        self.reported = now;
    }
}

/// The tag of a statement that sent rows, with their number where Postgres gives one.
pub(super) fn rows_tag(tag: &str, rows: u64) -> String {
    match tag {
        "SHOW" | "EXPLAIN" => tag.to_string(),
        "INSERT" => format!("INSERT 0 {rows}"),
        _ => format!("{tag} {rows}"),
    }
}

#[cfg(test)]
mod tests {
    use super::rows_tag;

    #[test]
    fn tags_have_the_shape_that_drivers_parse() {
        assert_eq!(rows_tag("SELECT", 3), "SELECT 3");
        assert_eq!(rows_tag("SHOW", 1), "SHOW");
        assert_eq!(rows_tag("EXPLAIN", 9), "EXPLAIN");
        assert_eq!(rows_tag("INSERT", 2), "INSERT 0 2");
    }
}

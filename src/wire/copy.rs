//! COPY FROM STDIN: the client's bytes go to the session piece by piece. The next piece is read when the session has taken
//! the one before, so that a fast client waits for a slow server.

use pgwire::messages::copy::CopyInResponse;
use pgwire::messages::response::CommandComplete;

use super::connection::Connection;
use super::error::Failure;
use super::message::Message;
use crate::error::{Error, Kind};
use crate::session::outcome::CopyIn;

/// COPY lines are text; there is no binary COPY.
const FORMAT_TEXT: i8 = 0;

impl Connection<'_> {
    /// Takes COPY data until the client ends it. The same for both protocols.
    pub(super) async fn copy_in(&mut self, copy: &CopyIn) -> Result<(), Failure> {
        let columns =
            i16::try_from(copy.columns).map_err(|_| Error::new(Kind::ProgramLimit, "COPY has too many columns"))?;
        self.writer.send(CopyInResponse::new(FORMAT_TEXT, columns, vec![0; copy.columns]));
        self.writer.flush().await?;
        match self.copy_all().await {
            Ok(rows) => {
                self.send_notices();
                self.writer.send(CommandComplete::new(format!("COPY {rows}")));
                Ok(())
            }
            Err((reason, failure)) => {
                self.session.copy_fail(reason).await;
                Err(failure)
            }
        }
    }

    /// The number of rows, or what the session is told and what the client is told.
    async fn copy_all(&mut self) -> Result<u64, (String, Failure)> {
        loop {
            let message = self
                .copy_message()
                .await
                .map_err(|failure| ("the connection failed or was cancelled".to_string(), failure))?;
            let refused = |failure| ("the data was refused".to_string(), failure);
            match message {
                Message::CopyData(data) => {
                    self.interrupts.statement(self.session.copy_data(data)).await.map_err(refused)?
                }
                Message::CopyDone => return self.interrupts.statement(self.session.copy_done()).await.map_err(refused),
                Message::CopyFail(reason) => {
                    let error = Error::new(Kind::Cancelled, format!("COPY from stdin failed: {reason}"));
                    return Err((reason, error.into()));
                }
                // Drivers send these right after Execute, before they know that data is wanted.
                Message::Flush | Message::Sync => {}
                _ => {
                    let reason = "unexpected message type during COPY from stdin";
                    return Err((reason.to_string(), Failure::protocol(reason)));
                }
            }
        }
    }

    async fn copy_message(&mut self) -> Result<Message, Failure> {
        match self.interrupts.stream(self.reader.frame()).await? {
            Some(frame) => Message::decode(frame),
            None => Err(Failure::Gone),
        }
    }
}

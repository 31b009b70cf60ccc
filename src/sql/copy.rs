//! COPY relation FROM STDIN, with the options of today, `WITH (FORMAT csv)`, and those of old, `CSV HEADER`.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{
    options::option_value,
    reader::Reader,
    statement::{CopyFormat, CopyFrom},
    unsupported::feature,
};
use crate::error::{Error, Result};

/// At COPY.
pub(super) fn copy(reader: &mut Reader) -> Result<CopyFrom> {
    reader.expect(&["copy"])?;
    if *reader.peek() == Token::LParen {
        return Err(no_copy_to(reader));
    }
    let relation = reader.relation()?;
    let columns = reader.column_list()?;
    if reader.at(&["to"]) {
        return Err(no_copy_to(reader));
    }
    reader.expect(&["from"])?;
    let place = reader.position();
    if !reader.eat(&["stdin"]) {
        return Err(match reader.peek() {
            Token::SingleQuotedString(_) => {
                feature("COPY from a file of the server", "Use psql's \\copy, or a stream with connector = 'file'.")
                    .at(place)
            }
            _ => reader.unexpected("STDIN"),
        });
    }
    let mut given = Given::default();
    reader.eat(&["with"]);
    if *reader.peek() == Token::LParen {
        reader.list(|reader| given.option(reader))?;
    } else {
        while !reader.done() {
            given.option(reader)?;
        }
    }
    Ok(CopyFrom { relation, columns, format: given.format() })
}

fn no_copy_to(reader: &Reader) -> Error {
    feature("COPY ... TO", "Use SELECT; psql writes files with \\o or --csv.").at(reader.position())
}

/// The options that were given.
#[derive(Default)]
struct Given {
    csv: bool,
    header: bool,
    delimiter: Option<u8>,
    null: Option<String>,
}

impl Given {
    /// One option in either spelling.
    fn option(&mut self, reader: &mut Reader) -> Result<()> {
        let place = reader.position();
        let name = reader.word("an option of COPY")?;
        match name.as_str() {
            "format" => match option_value(reader)?.to_lowercase().as_str() {
                "csv" => self.csv = true,
                "text" => self.csv = false,
                "binary" => return Err(no_binary().at(place)),
                other => return Err(Error::invalid(format!("COPY format \"{other}\" not recognized")).at(place)),
            },
            "csv" => self.csv = true,
            "text" => self.csv = false,
            "binary" => return Err(no_binary().at(place)),
            "header" => self.header = boolean(reader)?,
            "delimiter" | "delimiters" => self.delimiter = Some(self.one_byte(reader, "delimiter")?),
            "null" => self.null = Some(text(reader)?),
            "quote" | "escape" => {
                if self.one_byte(reader, &name)? != b'"' {
                    let error = feature(&format!("a COPY {name} other than '\"'"), "Write quotes as \"\".");
                    return Err(error.at(place));
                }
            }
            "encoding" => {
                if !matches!(text(reader)?.to_lowercase().as_str(), "utf8" | "utf-8" | "unicode") {
                    return Err(feature("a COPY encoding other than UTF8", "Convert the file to UTF-8.").at(place));
                }
            }
            other => {
                return Err(Error::syntax(format!("COPY option \"{other}\" not recognized"))
                    .hint("Known options are FORMAT, HEADER, DELIMITER, NULL, QUOTE, ESCAPE and ENCODING.")
                    .at(place));
            }
        }
        Ok(())
    }

    fn one_byte(&self, reader: &mut Reader, name: &str) -> Result<u8> {
        let place = reader.position();
        match text(reader)?.as_bytes() {
            [byte] if !matches!(byte, b'\n' | b'\r') => Ok(*byte),
            _ => Err(Error::invalid(format!("COPY {name} must be a single one-byte character")).at(place)),
        }
    }

    fn format(self) -> CopyFormat {
        let (delimiter, null) = if self.csv { (b',', "") } else { (b'\t', "\\N") };
        CopyFormat {
            csv: self.csv,
            header: self.header,
            delimiter: self.delimiter.unwrap_or(delimiter),
            null: self.null.unwrap_or_else(|| null.to_string()),
        }
    }
}

fn no_binary() -> Error {
    feature("COPY in binary format", "Use FORMAT csv or FORMAT text.")
}

/// `[AS] 'text'`.
fn text(reader: &mut Reader) -> Result<String> {
    reader.eat(&["as"]);
    option_value(reader)
}

/// HEADER alone means true.
fn boolean(reader: &mut Reader) -> Result<bool> {
    let place = reader.position();
    let word = match reader.peek() {
        Token::Word(word) => word.value.to_lowercase(),
        Token::Number(text, _) | Token::SingleQuotedString(text) => text.to_lowercase(),
        _ => return Ok(true),
    };
    let value = match word.as_str() {
        "true" | "on" | "1" => true,
        "false" | "off" | "0" => false,
        "match" => {
            return Err(feature("HEADER MATCH", "Use HEADER, and name the columns after the relation.").at(place));
        }
        // The next option of the old spelling.
        _ => return Ok(true),
    };
    reader.take();
    Ok(value)
}

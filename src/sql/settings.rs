//! What a session says about itself: SET, RESET, BEGIN, COMMIT, ROLLBACK, and what drivers send to tidy up.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{options::option_value, reader::Reader, statement::Statement, unsupported::feature};
use crate::error::Result;

/// At SET.
pub(super) fn set(reader: &mut Reader) -> Result<Statement> {
    reader.expect(&["set"])?;
    if reader.at(&["session", "characteristics"]) || reader.at(&["transaction"]) || reader.at(&["constraints"]) {
        // One isolation level, no constraints to defer: every wish is granted.
        reader.skip_rest();
        return Ok(Statement::Acknowledge("SET"));
    }
    if reader.at(&["session", "authorization"]) || reader.at(&["role"]) {
        return Err(feature("changing the role", "Connect as the other user.").at(reader.position()));
    }
    if !reader.eat(&["session"]) {
        reader.eat(&["local"]);
    }
    if reader.eat(&["names"]) {
        let value = value_list(reader)?;
        return Ok(Statement::Set { name: "client_encoding".to_string(), value });
    }
    let zone = reader.at(&["time", "zone"]);
    let name = setting_name(reader)?;
    let mut separated = reader.eat_token(&Token::Eq) || reader.eat(&["to"]);
    separated |= zone;
    if !separated {
        return Err(reader.unexpected("TO or ="));
    }
    let value = if zone && reader.eat(&["local"]) { None } else { value_list(reader)? };
    Ok(Statement::Set { name, value })
}

/// At RESET.
pub(super) fn reset(reader: &mut Reader) -> Result<Statement> {
    reader.expect(&["reset"])?;
    if reader.eat(&["all"]) {
        return Ok(Statement::Acknowledge("RESET"));
    }
    Ok(Statement::Set { name: setting_name(reader)?, value: None })
}

/// A setting's name in lower case, and the two that are several words.
pub(super) fn setting_name(reader: &mut Reader) -> Result<String> {
    if reader.eat(&["time", "zone"]) {
        return Ok("timezone".to_string());
    }
    if reader.eat(&["transaction", "isolation", "level"]) {
        return Ok("transaction_isolation".to_string());
    }
    let mut name = reader.word("a setting")?;
    while reader.eat_token(&Token::Period) {
        name.push('.');
        name.push_str(&reader.word("a setting")?);
    }
    Ok(name)
}

/// Values joined with commas; `None` for DEFAULT.
fn value_list(reader: &mut Reader) -> Result<Option<String>> {
    if reader.eat(&["default"]) {
        return Ok(None);
    }
    let mut value = option_value(reader)?;
    while reader.eat_token(&Token::Comma) {
        value.push_str(", ");
        value.push_str(&option_value(reader)?);
    }
    Ok(Some(value))
}

/// At BEGIN, START, COMMIT, END, ROLLBACK or ABORT.
pub(super) fn transaction(reader: &mut Reader) -> Result<Statement> {
    let statement = if reader.eat(&["begin"]) || reader.eat(&["start", "transaction"]) {
        Statement::Begin
    } else if reader.eat(&["commit"]) || reader.eat(&["end"]) {
        Statement::Commit
    } else if reader.eat(&["rollback"]) || reader.eat(&["abort"]) {
        Statement::Rollback
    } else {
        return Err(reader.unexpected("START TRANSACTION"));
    };
    if !reader.eat(&["work"]) {
        reader.eat(&["transaction"]);
    }
    let place = reader.position();
    match statement {
        Statement::Begin => while mode(reader)? {},
        _ if reader.at(&["prepared"]) => {
            return Err(feature("two-phase commit", "Use COMMIT.").at(place));
        }
        _ if reader.at(&["to"]) => {
            return Err(feature("ROLLBACK TO SAVEPOINT", "Use ROLLBACK, which undoes the whole transaction.").at(place));
        }
        _ if reader.at(&["and", "chain"]) => {
            return Err(feature("AND CHAIN", "Write BEGIN after it.").at(place));
        }
        _ => {
            reader.eat(&["and", "no", "chain"]);
        }
    }
    Ok(statement)
}

/// One transaction mode, which changes nothing; false when there is none.
fn mode(reader: &mut Reader) -> Result<bool> {
    const MODES: &[&[&str]] = &[
        &["isolation", "level", "serializable"],
        &["isolation", "level", "repeatable", "read"],
        &["isolation", "level", "read", "committed"],
        &["isolation", "level", "read", "uncommitted"],
        &["read", "only"],
        &["read", "write"],
        &["not", "deferrable"],
        &["deferrable"],
    ];
    if !MODES.iter().any(|words| reader.eat(words)) {
        return Ok(false);
    }
    reader.eat_token(&Token::Comma);
    Ok(true)
}

/// At DISCARD, DEALLOCATE, CLOSE or UNLISTEN.
pub(super) fn tidy_up(reader: &mut Reader) -> Result<Statement> {
    if reader.eat(&["discard", "all"]) {
        return Ok(Statement::Acknowledge("DISCARD ALL"));
    }
    if reader.eat(&["discard"]) {
        let tag = if reader.eat(&["plans"]) {
            "DISCARD PLANS"
        } else if reader.eat(&["sequences"]) {
            "DISCARD SEQUENCES"
        } else if reader.eat(&["temp"]) || reader.eat(&["temporary"]) {
            "DISCARD TEMP"
        } else {
            return Err(reader.unexpected("ALL, PLANS, SEQUENCES or TEMP"));
        };
        return Ok(Statement::Acknowledge(tag));
    }
    let (one, all) = if reader.eat(&["deallocate"]) {
        reader.eat(&["prepare"]);
        ("DEALLOCATE", "DEALLOCATE ALL")
    } else if reader.eat(&["close"]) {
        ("CLOSE CURSOR", "CLOSE CURSOR ALL")
    } else {
        reader.expect(&["unlisten"])?;
        ("UNLISTEN", "UNLISTEN")
    };
    if reader.eat(&["all"]) || reader.eat_token(&Token::Mul) {
        return Ok(Statement::Acknowledge(all));
    }
    reader.name("a name")?;
    Ok(Statement::Acknowledge(one))
}

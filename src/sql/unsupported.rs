//! Statements that Postgres or a neighbour has and Highwater has not: named, with what does the same.

use super::reader::Reader;
use crate::error::Error;

/// The first word, the words after it, and what to do instead. The first match counts.
const STATEMENTS: &[(&str, &[&str], &str)] = &[
    ("create", &["or", "replace"], "DROP the object first, then CREATE it."),
    ("create", &["recursive", "view"], "Use CREATE MATERIALIZED VIEW without recursion."),
    ("create", &["temp"], "Use CREATE TABLE; DROP it when done."),
    ("create", &["temporary"], "Use CREATE TABLE; DROP it when done."),
    ("create", &["unlogged"], "Use CREATE TABLE; SET synchronous_commit = off makes writes faster."),
    ("create", &["index"], "A view is kept by its key: declare PRIMARY KEY, or GROUP BY what you look up."),
    ("create", &["unique", "index"], "Declare PRIMARY KEY on the table."),
    ("create", &["trigger"], "A materialized view reacts to every change: put the condition in its WHERE."),
    ("create", &["rule"], "A materialized view reacts to every change: put the condition in its WHERE."),
    ("create", &["function"], "Write the expression in the view."),
    ("create", &["procedure"], "Send the statements from the client."),
    ("create", &["aggregate"], "Combine the built-in aggregates in a view."),
    ("create", &["sequence"], "Give the numbers yourself."),
    ("create", &["schema"], "Relations are in schema public; leave the schema out."),
    ("create", &["database"], "A server has one database; start another server with its own --data."),
    ("create", &["sink"], "Read the view with SELECT."),
    ("create", &["connection"], "Give the connection in WITH (...) of CREATE STREAM."),
    ("create", &["secret"], "Give the value in WITH (...) of CREATE STREAM."),
    ("create", &["extension"], "All functions are built in."),
    ("create", &["type"], "Use built-in types; a record is several columns."),
    ("create", &["domain"], "Use the built-in type."),
    ("create", &["role"], "Any user may connect."),
    ("create", &["user"], "Any user may connect."),
    ("create", &["foreign"], "Use CREATE STREAM with a connector."),
    ("create", &["external"], "Use CREATE STREAM with a connector."),
    ("create", &["publication"], "Read the view with SELECT."),
    ("create", &["subscription"], "Use CREATE STREAM with a connector."),
    ("drop", &[], "DROP takes TABLE, STREAM or MATERIALIZED VIEW."),
    ("alter", &["system"], "Change the configuration file, or SET it for the session."),
    ("alter", &[], "DROP the object and CREATE it with the new definition."),
    ("truncate", &[], "Use DELETE FROM without WHERE."),
    ("merge", &[], "Use INSERT, UPDATE and DELETE."),
    ("grant", &[], "Every user has every right."),
    ("revoke", &[], "Every user has every right."),
    ("subscribe", &[], "Read the view with SELECT."),
    ("declare", &[], "Read the view with SELECT."),
    ("fetch", &[], "Read the view with SELECT."),
    ("listen", &[], "Read the view with SELECT."),
    ("notify", &[], "INSERT into a stream, and read a view over it."),
    ("prepare", &[], "Prepare through the protocol, as drivers do."),
    ("execute", &[], "Prepare through the protocol, as drivers do."),
    ("savepoint", &[], "ROLLBACK undoes the whole transaction."),
    ("release", &[], "ROLLBACK undoes the whole transaction."),
    ("lock", &[], "A reader sees one consistent epoch and blocks nobody."),
    ("vacuum", &[], "Space is reclaimed in the background."),
    ("analyze", &[], "Statistics are not needed."),
    ("reindex", &[], "Indexes are kept up to date."),
    ("cluster", &[], "Rows are kept by their key."),
    ("refresh", &[], "Materialized views are always up to date; FLUSH waits for what was just written."),
    ("comment", &[], "Keep comments with the script that creates the objects."),
    ("call", &[], "Send the statements from the client."),
    ("do", &[], "Send the statements from the client."),
    ("load", &[], "All functions are built in."),
    ("use", &[], "A server has one database."),
    ("recover", &[], "Recovery is automatic at the start of the server."),
    ("wait", &[], "Use FLUSH."),
];

/// The error for a statement that is not ours: unsupported if it is known, else a syntax error at its start. The reader
/// is after the `first` word if that word was consumed, else at it.
pub(super) fn statement(reader: &mut Reader, first: &str) -> Error {
    let (place, unknown) = (reader.position(), reader.unexpected("a statement"));
    let consumed = !reader.at(&[first]);
    if !consumed {
        reader.take();
    }
    let known = STATEMENTS.iter().find(|(word, words, _)| *word == first && reader.at(words));
    match known {
        Some((word, words, hint)) => {
            let name: Vec<String> = std::iter::once(word).chain(words.iter()).map(|word| word.to_uppercase()).collect();
            feature(&name.join(" "), hint).at(place)
        }
        None if first == "create" => reader.unexpected("TABLE, STREAM or MATERIALIZED VIEW"),
        None => unknown,
    }
}

/// Something that Highwater does not have, and what to do instead.
pub(super) fn feature(name: &str, hint: &str) -> Error {
    Error::unsupported(format!("{name} is not supported")).hint(hint)
}

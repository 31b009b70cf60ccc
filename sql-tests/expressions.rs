//! Expressions give what PostgreSQL gives: type, text and SQLSTATE, in tables that a real PostgreSQL filled.
//!
//! `expressions/*.tsv`, one file an area: `expression <tab> type <tab> text`, or `expression <tab> ERROR <tab> SQLSTATE`.
//! `expressions/produce.py` fills the right columns. `expressions/deviations.tsv` has what Highwater answers instead, and
//! why, where it still differs: a deviation that is not listed fails the test, and so does a listed one that is gone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio_postgres::Client;

use super::server::{Server, block_on, try_rows};

/// What an entry in `deviations.tsv` may give as its reason. The manual's page on deviations explains each.
const REASONS: &[&str] = &["accepted", "error-code", "missing", "number-type", "precision", "type", "value"];

#[test]
fn equal_those_of_postgres() {
    let tables = tables();
    let listed = deviations();
    let mut wrong: Vec<String> = listed
        .keys()
        .filter(|expression| !tables.iter().any(|(_, entries)| entries.contains_key(*expression)))
        .map(|expression| format!("deviations.tsv: {expression} is in no table"))
        .collect();
    block_on(async {
        let server = Server::start(&[]);
        let client = server.connect().await;
        for (file, entries) in &tables {
            for (expression, wanted) in entries {
                let found = answer(&client, expression).await;
                let fault = match listed.get(expression) {
                    None if found != *wanted => "differs",
                    Some(_) if found == *wanted => "is listed in deviations.tsv and does not differ",
                    Some((answer, _)) if found != *answer => "differs, and not as deviations.tsv says",
                    _ => continue,
                };
                wrong.push(format!("{file}: {fault}\n  {expression}\n  PostgreSQL {wanted}\n  Highwater  {found}"));
            }
        }
    });
    assert!(wrong.is_empty(), "{} expressions:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn deviations_have_a_known_reason() {
    for (expression, (_, reason)) in deviations() {
        assert!(REASONS.contains(&reason.as_str()), "{expression}: {reason} is none of {}", REASONS.join(", "));
    }
}

/// `type <tab> text`, or `ERROR <tab> SQLSTATE`.
async fn answer(client: &Client, expression: &str) -> String {
    let statement = format!("SELECT {expression}");
    let answer = async {
        let prepared = client.prepare(&statement).await?;
        let rows = try_rows(client, &statement).await?;
        Ok((type_name(prepared.columns()[0].type_().name()), rows))
    };
    match answer.await {
        Ok((type_name, rows)) => {
            let text = rows.first().map_or("(no row)", |row| row[0].as_str());
            format!("{type_name}\t{}", text.replace('\n', "\\n").replace('\0', "\\0"))
        }
        Err(error) => error_code(&error),
    }
}

fn error_code(error: &tokio_postgres::Error) -> String {
    match error.code() {
        Some(code) => format!("ERROR\t{}", code.code()),
        None => format!("ERROR\t{error}"),
    }
}

/// The name that `pg_typeof` prints, from the name in `pg_type`.
fn type_name(name: &str) -> String {
    let name = match name {
        "bool" => "boolean",
        "bpchar" => "character",
        "char" => "\"char\"",
        "float4" => "real",
        "float8" => "double precision",
        "int2" => "smallint",
        "int4" => "integer",
        "int8" => "bigint",
        "time" => "time without time zone",
        "timestamp" => "timestamp without time zone",
        "timestamptz" => "timestamp with time zone",
        "varchar" => "character varying",
        array if array.starts_with('_') => return format!("{}[]", type_name(&array[1..])),
        other => other,
    };
    name.to_string()
}

/// Each table: its file's name, and the answer of PostgreSQL to each expression.
fn tables() -> Vec<(String, BTreeMap<String, String>)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder is there")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "tsv") && !path.ends_with("deviations.tsv"))
        .collect();
    files.sort();
    assert!(files.len() > 10, "there are tables");
    let table = |path: PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("text");
        let entry = |line: &str| {
            let (expression, answer) = line.split_once('\t').unwrap_or_else(|| panic!("{name}: {line} has no answer"));
            (expression.to_string(), answer.to_string())
        };
        let entries: BTreeMap<_, _> = text.lines().map(entry).collect();
        assert_eq!(entries.len(), text.lines().count(), "{name} has an expression twice");
        (name, entries)
    };
    files.into_iter().map(table).collect()
}

/// What Highwater answers, and the reason, for each expression that differs.
fn deviations() -> BTreeMap<String, (String, String)> {
    let text = std::fs::read_to_string(folder().join("deviations.tsv")).expect("the list is there");
    let entry = |line: &str| {
        let parts: Vec<&str> = line.split('\t').collect();
        let [expression, kind, answer, reason] = parts[..] else { panic!("deviations.tsv: {line}: four columns") };
        (expression.to_string(), (format!("{kind}\t{answer}"), reason.to_string()))
    };
    text.lines().map(entry).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sql-tests/expressions")
}

//! What is accepted and what it means; what is refused, with which words, and where the caret goes.

use std::time::Duration;

use datafusion::sql::sqlparser::ast::{SetExpr, TableFactor};

use super::{statement::*, *};
use crate::error::{Error, Kind};

const HOUR: i64 = 3_600_000_000;

/// The only statement of a text.
fn one(text: &str) -> Statement {
    let mut parsed = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(parsed.len(), 1, "{text}");
    parsed.remove(0).statement
}

fn refused(text: &str) -> Error {
    match parse(text).and_then(|parsed| windows(&parsed)) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error,
    }
}

/// The window calls in the FROM clause of each query.
fn windows(parsed: &[Parsed]) -> Result<Vec<WindowCall>> {
    let mut calls = Vec::new();
    for Parsed { statement, .. } in parsed {
        let query = match statement {
            Statement::Query(query) => query,
            Statement::CreateView(view) => &view.query,
            _ => continue,
        };
        let SetExpr::Select(select) = query.body.as_ref() else { continue };
        for from in &select.from {
            calls.extend(window_call(&from.relation)?);
            for join in &from.joins {
                calls.extend(window_call(&join.relation)?);
            }
        }
    }
    Ok(calls)
}

#[test]
fn the_first_words_choose_the_statement() {
    for (text, expected) in [
        ("CREATE TABLE IF NOT EXISTS public.Airports (faa TEXT PRIMARY KEY, lat DOUBLE PRECISION)", "CreateRelation"),
        ("CREATE STREAM bids WITH (connector = 'nexmark')", "CreateRelation"),
        ("CREATE MATERIALIZED VIEW v AS TABLE t", "CreateView"),
        (
            "DROP MATERIALIZED VIEW IF EXISTS a, public.b CASCADE",
            "Drop(Drop { kind: MaterializedView, names: [\"a\", \"b\"], if_exists: true, cascade: true })",
        ),
        (
            "INSERT INTO t (a, \"B\") VALUES (1, -2), (DEFAULT, $1)",
            "Insert(Insert { relation: \"t\", columns: [\"a\", \"B\"]",
        ),
        ("INSERT INTO t SELECT * FROM u", "Insert"),
        (
            "UPDATE public.t SET A = a + 1, b = NULL WHERE c IS NOT NULL",
            "Update(Update { relation: \"t\", assignments: [(\"a\"",
        ),
        ("DELETE FROM T", "Delete(Delete { relation: \"t\", filter: None })"),
        (
            "COPY t FROM STDIN",
            "CopyFrom(CopyFrom { relation: \"t\", columns: [], format: CopyFormat { csv: false, header: false, delimiter: 9, \
             null: \"\\\\N\" } })",
        ),
        (
            "COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER true, DELIMITER ';', NULL 'NA')",
            "CopyFrom(CopyFrom { relation: \"t\", columns: [\"a\", \"b\"], format: CopyFormat { csv: true, header: true, \
             delimiter: 59, null: \"NA\" } })",
        ),
        (
            "COPY t FROM STDIN CSV HEADER DELIMITER AS '|' NULL AS ''",
            "CopyFrom(CopyFrom { relation: \"t\", columns: [], format: CopyFormat { csv: true, header: true, \
             delimiter: 124, null: \"\" } })",
        ),
        ("(SELECT 1) UNION ALL VALUES (2)", "Query"),
        ("SELECT sum(x) OVER w FROM t WINDOW w AS (PARTITION BY y)", "Query"),
        ("SELECT emit, lateness FROM t emit WHERE hop(1) > size", "Query"),
        ("EXPLAIN (VERBOSE, FORMAT json) SELECT 1", "Explain(Query"),
        ("EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT FINAL", "Explain(Create"),
        ("EXPLAIN MATERIALIZED VIEW V", "Explain(View(\"v\"))"),
        ("SHOW TABLES", "Show(Objects(Table))"),
        ("SHOW SOURCES", "Show(Objects(Stream))"),
        ("SHOW MATERIALIZED VIEWS", "Show(Objects(MaterializedView))"),
        ("SHOW CREATE STREAM s", "Show(Create(\"s\"))"),
        ("SHOW COLUMNS FROM s", "Show(Columns(\"s\"))"),
        ("DESCRIBE public.s", "Show(Columns(\"s\"))"),
        ("SHOW ALL", "Show(All)"),
        ("SHOW TRANSACTION ISOLATION LEVEL", "Show(Setting(\"transaction_isolation\"))"),
        ("SHOW Server_Version", "Show(Setting(\"server_version\"))"),
        ("SET search_path TO a, 'b'", "Set { name: \"search_path\", value: Some(\"a, b\") }"),
        ("SET SESSION extra_float_digits = -3", "Set { name: \"extra_float_digits\", value: Some(\"-3\") }"),
        ("SET synchronous_commit = off", "Set { name: \"synchronous_commit\", value: Some(\"off\") }"),
        ("SET TIME ZONE 'UTC'", "Set { name: \"timezone\", value: Some(\"UTC\") }"),
        ("SET x TO DEFAULT", "Set { name: \"x\", value: None }"),
        ("RESET x.y", "Set { name: \"x.y\", value: None }"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "Acknowledge(\"SET\")"),
        ("FLUSH", "Flush"),
        ("CHECKPOINT", "Checkpoint"),
        ("START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY", "Begin"),
        ("END WORK", "Commit"),
        ("ABORT", "Rollback"),
        ("DISCARD ALL", "Acknowledge(\"DISCARD ALL\")"),
        ("DEALLOCATE ALL", "Acknowledge(\"DEALLOCATE ALL\")"),
    ] {
        let statement = format!("{:?}", one(text));
        assert!(statement.starts_with(expected), "{text}\n  {statement}");
    }
}

#[test]
fn what_is_refused_says_why_and_where() {
    use Kind::{DuplicateColumn, InvalidParameter as Invalid, Syntax, UndefinedColumn, Unsupported};
    // The caret stands under the position that is expected.
    for (text, caret, kind, message) in [
        ("SELEC 1", "^", Syntax, "syntax error at or near \"SELEC\""),
        ("SELECT 1; SELECT a FROM )", "                        ^", Syntax, "syntax error at or near \")\""),
        ("SELECT 'é',\n  1 +", "                 ^", Syntax, "syntax error at end of input"),
        ("SELECT 'abc", "       ^", Syntax, "unterminated quoted string"),
        ("SELECT 1)", "        ^", Syntax, "syntax error at or near \")\""),
        ("SELECT 1 2", "         ^", Syntax, "syntax error at or near \"2\""),
        ("FLUSH now", "      ^", Syntax, "syntax error at or near \"now\""),
        ("CREATE TABLE t", "              ^", Syntax, "syntax error at end of input"),
        ("CREATE TABLE t (a INT b INT)", "                      ^", Syntax, "syntax error at or near \"b\""),
        (
            "CREATE TABLE t (a INT, A TEXT)",
            "                       ^",
            DuplicateColumn,
            "column \"a\" specified more than once",
        ),
        (
            "CREATE TABLE t (a INT, PRIMARY KEY (b))",
            "                                    ^",
            UndefinedColumn,
            "column \"b\" named in key does not exist",
        ),
        ("CREATE TABLE t (a INT DEFAULT 1)", "                      ^", Unsupported, "DEFAULT is not supported"),
        ("CREATE TABLE t (a INT, CHECK (a > 0))", "                       ^", Unsupported, "CHECK is not supported"),
        (
            "CREATE STREAM s (a INT PRIMARY KEY)",
            "                       ^",
            Invalid,
            "an append-only relation cannot have a PRIMARY KEY",
        ),
        (
            "CREATE STREAM s (WATERMARK FOR b AS b, a INT)",
            "                 ^",
            UndefinedColumn,
            "column \"b\" named in WATERMARK FOR does not exist",
        ),
        (
            "CREATE STREAM s (a INT, WATERMARK FOR a AS a IDLE AFTER INTERVAL '0 s')",
            "                                                        ^",
            Invalid,
            "IDLE AFTER must be greater than zero",
        ),
        ("CREATE TABLE x.t (a INT)", "             ^", Unsupported, "schema \"x\" cannot be written to"),
        (
            "CREATE TABLE t (a INT) WITH (k = 1, K = 2)",
            "                                    ^",
            Invalid,
            "option \"k\" is given twice",
        ),
        ("CREATE TABLE t AS SELECT 1", "               ^", Unsupported, "CREATE TABLE AS is not supported"),
        ("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1", "^", Unsupported, "CREATE OR REPLACE is not supported"),
        ("CREATE TRIGGER x", "^", Unsupported, "CREATE TRIGGER is not supported"),
        ("CREATE NONSENSE x", "       ^", Syntax, "syntax error at or near \"NONSENSE\""),
        ("ALTER TABLE t ADD COLUMN b INT", "^", Unsupported, "ALTER is not supported"),
        ("CREATE MATERIALIZED VIEW v AS", "                             ^", Syntax, "syntax error at end of input"),
        (
            "CREATE MATERIALIZED VIEW v AS EMIT FINAL",
            "                              ^",
            Syntax,
            "syntax error at or near \"EMIT\"",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT ON CLOSE",
            "                                            ^",
            Syntax,
            "syntax error at or near \"ON\"",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT EVERY INTERVAL '1 s'",
            "                                            ^",
            Unsupported,
            "EMIT EVERY is not supported yet",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT 1 EMIT FINAL EMIT FINAL",
            "                                                  ^",
            Syntax,
            "EMIT is given twice",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT 1 ALLOWED LATENESS INTERVAL '-1 s'",
            "                                                        ^",
            Invalid,
            "ALLOWED LATENESS must not be negative",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT 1 + EMIT FINAL",
            "                                         ^",
            Syntax,
            "syntax error at or near \"EMIT\"",
        ),
        (
            "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
            "                         ^",
            Unsupported,
            "ON CONFLICT is not supported",
        ),
        (
            "INSERT INTO t VALUES (1) RETURNING a",
            "                                   ^",
            Unsupported,
            "RETURNING is not supported",
        ),
        ("UPDATE t AS x SET a = 1", "            ^", Unsupported, "an alias for the changed relation is not supported"),
        ("UPDATE t SET a = 1 FROM u", "                   ^", Unsupported, "UPDATE ... FROM is not supported"),
        ("DELETE FROM t USING u", "              ^", Unsupported, "DELETE ... USING is not supported"),
        ("COPY t TO STDOUT", "       ^", Unsupported, "COPY ... TO is not supported"),
        ("COPY t FROM 'file.csv'", "            ^", Unsupported, "COPY from a file of the server is not supported"),
        (
            "COPY t FROM STDIN (FORMAT binary)",
            "                   ^",
            Unsupported,
            "COPY in binary format is not supported",
        ),
        (
            "COPY t FROM STDIN (DELIMITER 'ab')",
            "                             ^",
            Invalid,
            "COPY delimiter must be a single one-byte character",
        ),
        ("EXPLAIN ANALYZE SELECT 1", "        ^", Unsupported, "EXPLAIN ANALYZE is not supported"),
        ("ROLLBACK TO SAVEPOINT a", "         ^", Unsupported, "ROLLBACK TO SAVEPOINT is not supported"),
    ] {
        let error = refused(text);
        let found = (error.kind, error.message.as_str(), error.position);
        assert_eq!(found, (kind, message, Some(caret.chars().count() as u32)), "{text}\n{error:?}");
        assert!(kind != Unsupported || error.hint.is_some(), "{text}: an unsupported feature says what to do instead");
    }
}

#[test]
fn a_stream_keeps_every_clause() {
    let Statement::CreateRelation(stream) = one("CREATE STREAM departures (scheduled_at TIMESTAMP(3) NOT NULL,
           WATERMARK FOR scheduled_at AS scheduled_at - INTERVAL '30 minutes'
             MAX FUTURE SKEW INTERVAL '1 day' IDLE AFTER INTERVAL '45' SECOND,
           \"Tail Num\" VARCHAR(6))
         WITH (connector = 'file', 'Header' = true, retention = INTERVAL '30 days', rate = -1.5, properties.a = b)")
    else {
        panic!("a stream is a relation");
    };
    assert!(stream.append_only && stream.notices.is_empty());
    let columns: Vec<_> = stream.columns.iter().map(|c| (c.name.as_str(), c.not_null, c.position)).collect();
    assert_eq!(columns, [("scheduled_at", true, 40), ("Tail Num", false, 242)]);
    let watermark = stream.watermark.expect("it is declared");
    assert_eq!(watermark.expression.to_string(), "scheduled_at - INTERVAL '30 minutes'");
    assert_eq!((watermark.idle_after, watermark.future_skew_max), (Some(45_000_000), Some(24 * HOUR)));
    let options: Vec<_> = stream.options.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(options, ["connector=file", "header=true", "properties.a=b", "rate=-1.5", "retention=30 days"]);
}

#[test]
fn familiar_words_that_mean_something_here_are_noticed() {
    for (text, append_only, notice) in [
        ("CREATE TABLE t (a INT, b INT) APPEND ONLY", true, ""),
        ("CREATE TABLE t (a INT)", false, ""),
        ("CREATE TABLE t (a INT PRIMARY KEY) WITH (connector = 'file')", false, ""),
        (
            "CREATE TABLE t (a INT) WITH (connector = 'file')",
            true,
            "table \"t\" has a connector and no PRIMARY KEY: it is append-only",
        ),
        (
            "CREATE STREAM t (at TIMESTAMP LATENESS INTERVAL '1 hour')",
            true,
            "LATENESS was read as WATERMARK FOR at AS at - INTERVAL '1 hour'",
        ),
    ] {
        let Statement::CreateRelation(relation) = one(text) else { panic!("{text}") };
        assert_eq!((relation.append_only, relation.notices.concat()), (append_only, notice.to_string()), "{text}");
    }
}

#[test]
fn clauses_after_the_query_come_in_any_order_and_leave_the_query_whole() {
    let Statement::CreateView(view) = one("CREATE MATERIALIZED VIEW public.v (a, b) WITH (state_ttl = '7 days') AS
         SELECT window_end, count(*) AS lateness FROM departures d WINDOW TUMBLE (at, SIZE INTERVAL '1 hour')
         GROUP BY window_end
         LATE DATA INTO late WITH (retention = '30 days') LATENESS INTERVAL '1 hour' EMIT ON WINDOW CLOSE")
    else {
        panic!("a view");
    };
    assert_eq!((view.name.as_str(), view.columns.len(), view.options.len()), ("v", 2, 1));
    assert_eq!((view.emit, view.lateness), (Emit::OnWindowClose, Some(HOUR)));
    assert_eq!(view.late_into.map(|late| (late.name, late.options.len())), Some(("late".to_string(), 1)));
    assert_eq!(
        view.query.to_string(),
        "SELECT window_end, count(*) AS lateness FROM TUMBLE(departures, at, SIZE => INTERVAL '1 hour') AS d \
         GROUP BY window_end"
    );
}

#[test]
fn every_spelling_of_a_window_is_the_same_window() {
    let tumble = WindowKind::Tumble { size: HOUR, offset: 0 };
    let hop = WindowKind::Hop { slide: HOUR / 4, size: HOUR, offset: HOUR / 2 };
    for (from, kind, alias) in [
        ("TUMBLE(t, at, INTERVAL '1 hour')", tumble, None),
        ("tumble(public.t, t.at, '60 minutes', INTERVAL '0 s') AS w", tumble, Some("w")),
        ("TUMBLE((SELECT * FROM t), at, INTERVAL '1' HOUR) w", tumble, Some("w")),
        ("TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), INTERVAL '1 hour')) w", tumble, Some("w")),
        ("TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(at), SIZE => INTERVAL '1 hour')", tumble, None),
        ("t WINDOW TUMBLE (at, INTERVAL '1 hour')", tumble, None),
        ("t AS w WINDOW TUMBLE (w.at, SIZE INTERVAL '1 hour', OFFSET INTERVAL '0 s')", tumble, Some("w")),
        ("u JOIN t w WINDOW TUMBLE (at, SIZE INTERVAL '1 hour') ON u.a = w.a", tumble, Some("w")),
        ("HOP(t, at, INTERVAL '15 min', INTERVAL '1 hour', INTERVAL '30 min')", hop, None),
        ("t WINDOW HOP (at, SIZE INTERVAL '1 h', ADVANCE BY INTERVAL '15 min', OFFSET INTERVAL '30 min')", hop, None),
        ("t WINDOW HOP (at, SLIDE INTERVAL '15 min', SIZE INTERVAL '1 h', OFFSET INTERVAL '30 min')", hop, None),
    ] {
        let parsed = parse(&format!("SELECT * FROM {from}")).unwrap_or_else(|error| panic!("{from}: {error}"));
        let calls = windows(&parsed).unwrap_or_else(|error| panic!("{from}: {error}"));
        let [call] = calls.as_slice() else { panic!("{from}: one window") };
        assert_eq!((call.kind, call.time_column.value.as_str()), (kind, "at"), "{from}");
        assert_eq!(call.alias.as_ref().map(|alias| alias.name.value.as_str()), alias, "{from}");
        let is_input = matches!(&call.input, TableFactor::Derived { .. })
            || call.input.to_string().trim_start_matches("public.") == "t";
        assert!(is_input && call.position > 14, "{from}: {} at {}", call.input, call.position);
    }
}

#[test]
fn an_impossible_window_names_the_argument_and_its_value() {
    for (from, caret, message) in [
        ("TUMBLE(t, at, INTERVAL '0 s')", "                       ^", "TUMBLE size must be greater than zero"),
        ("TUMBLE(t, at, INTERVAL '-5 s')", "                       ^", "TUMBLE size must be greater than zero"),
        ("TUMBLE(t, at)", "^", "TUMBLE needs a size"),
        ("TUMBLE(t)", "^", "TUMBLE needs a size"),
        ("t WINDOW TUMBLE (SIZE '1 hour')", "         ^", "TUMBLE needs a time column"),
        (
            "TUMBLE(t, at, INTERVAL '1 month')",
            "                       ^",
            "TUMBLE size INTERVAL '1 month' is not a fixed length of time",
        ),
        ("TUMBLE(t, at, 5 + 5)", "              ^", "TUMBLE size: expected a length of time, found 5 + 5"),
        ("TUMBLE(t, at, '1h', '0s', '1h')", "                          ^", "TUMBLE takes at most 4 arguments"),
        ("TUMBLE(t, at, '1h', size => '1h')", "                            ^", "TUMBLE has an argument twice"),
        ("TUMBLE(t, at, GAP => '1h')", "              ^", "TUMBLE has no argument \"gap\""),
        ("TUMBLE(t, at + 1, '1h')", "          ^", "the time column of TUMBLE must be a column name, not at + 1"),
        ("TUMBLE('t', at, '1h')", "       ^", "the first argument of TUMBLE must be a relation, not 't'"),
        ("HOP(t, at, '1 hour', '5 min')", "           ^", "HOP slide 1h is greater than its size 5m"),
        ("HOP(t, at, '5 min')", "^", "HOP needs a size"),
        ("t WINDOW SESSION (at, '5 min')", "         ^", "SESSION windows are not supported yet"),
        ("CUMULATE(t, at, '5 min', '1 h')", "^", "CUMULATE windows are not supported yet"),
    ] {
        let error = refused(&format!("SELECT * FROM {from}"));
        let expected = (message, Some(14 + caret.len() as u32));
        assert_eq!((error.message.as_str(), error.position), expected, "{from}\n{error:?}");
    }
}

#[test]
fn each_statement_keeps_its_own_text() {
    let parsed = parse(" ;; SELECT 'ä;b' -- first;\n ;/* x */ FLUSH /* y */;").expect("two statements");
    let texts: Vec<_> = parsed.iter().map(|parsed| parsed.text.as_str()).collect();
    assert_eq!(texts, ["SELECT 'ä;b'", "FLUSH"]);
    assert!(parse(" -- nothing\n;").expect("nothing is no error").is_empty());
}

#[test]
fn types_of_postgres_and_its_neighbours_are_arrow_types() {
    for (declared, expected) in [
        ("INT", Some("Int32")),
        ("int8", Some("Int64")),
        ("DOUBLE", Some("Float64")),
        ("FLOAT(24)", Some("Float32")),
        ("character varying(3)", Some("Utf8")),
        ("STRING", Some("Utf8")),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", Some("Timestamp(µs)")),
        ("timestamptz", Some("Timestamp(µs, \"+00:00\")")),
        ("NUMERIC", Some("Decimal128(38, 10)")),
        ("DECIMAL(12, 2)", Some("Decimal128(12, 2)")),
        ("INTERVAL", Some("Interval(MonthDayNano)")),
        ("bytea", Some("Binary")),
        ("INT[]", None),
        ("serial", None),
        ("NUMERIC(39)", None),
        ("blue", None),
    ] {
        let Statement::CreateRelation(table) = one(&format!("CREATE TABLE t (a {declared})")) else { panic!() };
        let Column { data_type, position, .. } = &table.columns[0];
        match (arrow_type(data_type, *position), expected) {
            (Ok(found), Some(expected)) => assert_eq!(found.to_string(), expected, "{declared}"),
            (Err(error), None) => assert_eq!(error.position, Some(19), "{declared}"),
            (found, _) => panic!("{declared}: {found:?}"),
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a small stack of its own is the point of the test")]
fn hostile_text_is_refused_quickly_and_on_a_small_stack() {
    const TIMES: usize = 100_000;
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("SELECT {}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let mut texts =
        vec![nested("INTERVAL ", "'1 s'", "", TIMES), nested("f(", "1", ")", 40), nested("CAST(", "x", ")", 40)];
    for open in ["(", "-", "NOT ", "f(", "CASE ", "ARRAY[", "(SELECT ", "EXISTS(", "CAST("] {
        texts.push(nested(open, "1", "", TIMES));
    }
    for chain in [" + 1", " OR a", "::INT", "[1]", " IS NULL", " AND NOT b", "[]", ".b", " 1", " COLLATE x"] {
        texts.push(format!("SELECT a{}", chain.repeat(TIMES)));
        texts.push(format!("SELECT a{}", chain.repeat(1_900)));
    }
    texts.push(format!("SELECT 1{}", " UNION SELECT 1".repeat(79)));
    texts.push(nested("* FROM (SELECT ", "1", ")", 15));
    texts.push(nested(&format!("{}(", "1 + ".repeat(100)), "1", ")", 90));
    for clause in [" WINDOW TUMBLE (a)", ") WINDOW TUMBLE (", " JOIN (a", " WINDOW TUMBLE ((a)"] {
        texts.push(format!("SELECT 1 FROM a{}", clause.repeat(TIMES)));
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    let small = std::thread::Builder::new().stack_size(2 << 20);
    small
        .spawn(move || {
            for text in texts {
                // Accepted or refused: it must come back, and what it gives must be droppable.
                let _ = parse(&text).map(|parsed| parsed.first().map(|first| first.statement.clone()));
                sender.send(text[..40.min(text.len())].to_string()).expect("the test listens");
            }
        })
        .expect("a thread");
    let mut last = "nothing".to_string();
    loop {
        match receiver.recv_timeout(Duration::from_secs(20)) {
            Ok(text) => last = text,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(_) => panic!("stuck after {last}"),
        }
    }
    assert_eq!(refused(&" ".repeat(tokens::TEXT_BYTES_MAX + 1)).kind, Kind::ProgramLimit);
}

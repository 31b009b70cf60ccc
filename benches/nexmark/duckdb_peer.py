"""DuckDB on the queries of this folder: the same text, run once as a batch over the same CSV files, with two threads.

usage: duckdb_peer.py DATA QUERY              measures: one line of JSON
       duckdb_peer.py DATA --answers OUT      writes the rows of every query, sorted, as OUT/qNN.csv

Windows are spelled out, functions that have another name are macros, and rows that tie in a ranking are ordered by
themselves, as Highwater does.
"""
import json
import re
import resource
import sys
import time
from pathlib import Path

import duckdb

QUERIES = Path(__file__).parent / "queries"

MACROS = """
CREATE MACRO to_char(value, pattern) AS strftime(value, replace(replace(pattern, 'HH24', '%H'), 'MI', '%M'));
CREATE MACRO regexp_like(value, pattern) AS regexp_matches(value, pattern);
CREATE MACRO regexp_match(value, pattern) AS [regexp_extract(value, pattern, 1), regexp_extract(value, pattern, 2)];
"""

TUMBLE = """(SELECT *, time_bucket({size}, {time}) AS window_start, time_bucket({size}, {time}) + {size} AS window_end
  FROM {relation})"""

HOP = """(SELECT * EXCLUDE (back), window_start + {size} AS window_end FROM (
  SELECT *, time_bucket({slide}, {time}) - back * {slide} AS window_start FROM {relation}, (VALUES {steps}) AS b (back)))"""

SESSION = """(SELECT *, min({time}) OVER session AS window_start, max({time}) OVER session + {size} AS window_end FROM (
  SELECT *, sum(fresh) OVER (PARTITION BY {key} ORDER BY {time}) AS number FROM (
    SELECT *, CASE WHEN {time} - lag({time}) OVER (PARTITION BY {key} ORDER BY {time}) <= {size} THEN 0 ELSE 1 END AS fresh
    FROM {relation})) WINDOW session AS (PARTITION BY {key}, number))"""

INTERVAL = r"(INTERVAL '\d+' SECOND)"


def steps(slide, size):
    seconds = [int(re.search(r"\d+", interval)[0]) for interval in (slide, size)]
    return ", ".join(f"({back})" for back in range(seconds[1] // seconds[0]))


def translate(text):
    text = re.sub(r"--.*", "", text)
    text = re.sub(rf"TUMBLE\((\w+), (\w+), {INTERVAL}\)",
                  lambda m: TUMBLE.format(relation=m[1], time=m[2], size=m[3]), text)
    text = re.sub(rf"HOP\((\w+), (\w+), {INTERVAL}, {INTERVAL}\)",
                  lambda m: HOP.format(relation=m[1], time=m[2], slide=m[3], size=m[4], steps=steps(m[3], m[4])), text)
    text = re.sub(rf"SESSION\(TABLE (\w+) PARTITION BY (\w+), DESCRIPTOR\((\w+)\), {INTERVAL}\)",
                  lambda m: SESSION.format(relation=m[1], key=m[2], time=m[3], size=m[4]), text)
    return text.replace("MATERIALIZED VIEW", "VIEW")


def open_database(data):
    database = duckdb.connect()
    database.execute("SET threads = 2")
    database.execute(MACROS)
    streams = re.sub(r"--.*", "", (QUERIES / "streams.sql").read_text())
    for name, columns in re.findall(r"CREATE STREAM (\w+) \((.*?),\s+WATERMARK", streams, re.S):
        pairs = ", ".join("'{}': '{}'".format(*column.split()) for column in columns.split(","))
        database.execute(
            f"CREATE VIEW {name} AS SELECT * FROM read_csv('{data}/{name}.csv', header = false, auto_detect = false, "
            f"delim = ',', columns = {{{pairs}}})")
    return database


def prepare(database, path, ties=False):
    text = translate(path.read_text())
    if ties:
        text = text.replace("ORDER BY price DESC)", "ORDER BY price DESC, ALL)").replace(
            "ORDER BY date_time DESC)", "ORDER BY date_time DESC, ALL)").replace(", ALL)", ", auction, bidder, date_time)")
    database.execute(text)
    return "q" + str(int(path.stem[1:]))


def field(value):
    if value is None:
        return ""
    if hasattr(value, "microsecond"):
        return f"{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03d}"
    if isinstance(value, float):
        return f"{value:.6f}"
    return str(value)


def answers(data, out):
    Path(out).mkdir(parents=True, exist_ok=True)
    for path in sorted(QUERIES.glob("q*.sql")):
        database = open_database(data)
        view = prepare(database, path, ties=True)
        cursor = database.execute(f"SELECT * FROM {view}")
        header = ",".join(column[0] for column in cursor.description)
        rows = sorted(",".join(field(value) for value in row) for row in cursor.fetchall())
        (Path(out) / f"{path.stem}.csv").write_text("\n".join([header] + rows) + "\n")


def measure(data, name):
    database = open_database(data)
    view = prepare(database, QUERIES / f"{name}.sql")
    cpu, wall = time.process_time(), time.monotonic()
    # Every column of every row is computed, and no row leaves the engine.
    rows, _ = database.execute(f"SELECT count(*), bit_xor(hash(r)) FROM {view} AS r").fetchone()
    print(json.dumps({
        "cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall, "rows": rows,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))


if __name__ == "__main__":
    if sys.argv[2] == "--answers":
        answers(sys.argv[1], sys.argv[3])
    else:
        measure(sys.argv[1], sys.argv[2])

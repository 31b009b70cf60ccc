#!/usr/bin/env python3
"""Fills the right columns of the tables here from a real PostgreSQL.

    PGHOST=127.0.0.1 PGUSER=postgres ./produce.py [file.tsv ...]

The first column of each line is kept; what psql says about `SELECT <expression>` replaces the others. The session runs
in UTC with DateStyle ISO. The tables in the repository come from PostgreSQL 15 with LC_COLLATE and LC_CTYPE C.UTF-8.
"""

import pathlib
import subprocess
import sys

SETTINGS = "SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres'; SET bytea_output = 'hex';"
FOLDER = pathlib.Path(__file__).parent


def ask(expressions):
    """Type and text, or ERROR and SQLSTATE, of each expression."""
    script = ["\\set VERBOSITY sqlstate", "\\pset null NULL", "\\pset fieldsep '\\t'", "\\set QUIET on", SETTINGS]
    for expression in expressions:
        script += ["\\echo <<<", f"SELECT pg_typeof(x), x FROM (SELECT {expression}) AS answer(x);"]
    psql = ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", "postgres"]
    done = subprocess.run(psql, input="\n".join(script), capture_output=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=True)
    return [answer(block.strip("\n")) for block in done.stdout.split("<<<\n")[1:]]


def answer(block):
    if block.startswith("ERROR:"):
        return "ERROR\t" + block.split()[1]
    assert "\n" not in block, f"a value of several lines does not fit into a table:\n{block}"
    return block


def main():
    chosen = [pathlib.Path(name) for name in sys.argv[1:]]
    files = chosen or sorted(path for path in FOLDER.glob("*.tsv") if path.name != "deviations.tsv")
    for path in files:
        expressions = [line.split("\t")[0] for line in path.read_text().splitlines()]
        answers = ask(expressions)
        assert len(answers) == len(expressions), f"{path}: {len(answers)} answers"
        path.write_text("".join(f"{left}\t{right}\n" for left, right in zip(expressions, answers)))
        print(f"{path.name}: {len(expressions)}")


main()

//! Random continuous queries over the tables `keyed (k, g, n, f, s, at, d)` and `loose (g, n, f, s, at, d)` and the stream
//! `grown`, which is like `loose`: everything that the manual lists. What depends on the order of equal rows is ordered by a key.

use fastrand::Rng;

/// Aggregates that have one answer whatever the order of rows.
const AGGREGATES: &[&str] = &[
    "count(*)",
    "count(n)",
    "sum(n)",
    "sum(f)",
    "sum(d)",
    "avg(n)",
    "avg(d)",
    "min(n)",
    "max(s)",
    "max(at)",
    // The batch engine takes NaN for the least float; Postgres and views for the greatest.
    "min(f) FILTER (WHERE f < 100)",
    "max(d)",
    "count(*) FILTER (WHERE n > 2)",
    "count(DISTINCT s)",
    "count(DISTINCT n) FILTER (WHERE f > 0)",
    "sum(n + 1) FILTER (WHERE f > 0.5)",
    "sum(DISTINCT n)",
    "bool_and(n > 1)",
    "bool_or(s = 'a')",
    "bit_and(n)",
    "bit_or(n)",
    "bit_xor(n)",
    "stddev(n)",
    "var_pop(n)",
    "covar_samp(n, g)",
    "regr_count(n, g)",
    "string_agg(s, ',' ORDER BY s, n)",
    "array_agg(n ORDER BY n DESC, s)",
    "array_agg(DISTINCT s ORDER BY s)",
    "median(n)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY n)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY n)",
    "mode() WITHIN GROUP (ORDER BY n)",
    "first_value(n ORDER BY n DESC NULLS LAST)",
    "last_value(s ORDER BY s NULLS FIRST)",
];

/// Window functions over `keyed`, whose `k` leaves no ties.
const OVER: &[&str] = &[
    "lag(n) OVER (PARTITION BY g ORDER BY k)",
    "lead(s, 2, 'none') OVER (PARTITION BY g ORDER BY n, k)",
    "first_value(n) OVER (PARTITION BY s ORDER BY k)",
    "last_value(n) OVER (PARTITION BY s ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "nth_value(s, 2) OVER (PARTITION BY g ORDER BY k)",
    "ntile(3) OVER (PARTITION BY s ORDER BY k)",
    "percent_rank() OVER (PARTITION BY g ORDER BY n)",
    "cume_dist() OVER (PARTITION BY g ORDER BY n)",
    "sum(n) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "count(*) OVER (PARTITION BY g ORDER BY n)",
    "sum(n) OVER (PARTITION BY s ORDER BY n RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "count(s) OVER (PARTITION BY g ORDER BY n GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "max(n) OVER (PARTITION BY g)",
    "row_number() OVER (PARTITION BY g ORDER BY n DESC NULLS LAST, k)",
    "rank() OVER (ORDER BY n, g)",
    "dense_rank() OVER (PARTITION BY s ORDER BY n)",
];

const FILTERS: &[&str] = &["", " WHERE n > 3", " WHERE g IS NOT NULL AND f < 2", " WHERE s LIKE 'a%' OR n IS NULL"];

const HAVINGS: &[&str] = &["", "", " HAVING count(*) > 1", " HAVING sum(n) > 4"];

const JOINS: &[&str] = &["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"];

const ONS: &[&str] = &[
    "a.g = b.g",
    "a.g = b.g AND a.n < b.n",
    "a.g + 1 = b.n",
    "a.s = b.s AND a.f = b.f",
    "a.s = b.s AND (a.g IS NOT DISTINCT FROM b.g)",
    "a.n > b.n AND a.f < b.f",
];

/// Conditions on `a` with subqueries.
const SUBQUERIES: &[&str] = &[
    "EXISTS (SELECT 1 FROM loose b WHERE b.g = a.g AND b.n > 2)",
    "NOT EXISTS (SELECT 1 FROM loose b WHERE b.g = a.g)",
    "a.n IN (SELECT n FROM loose WHERE f > 0)",
    "a.n NOT IN (SELECT n FROM loose WHERE f > 3)",
    "a.n NOT IN (SELECT b.n FROM loose b WHERE b.g = a.g)",
    "(a.g, a.n) IN (SELECT g, n FROM loose)",
    "a.n IN (SELECT n FROM loose) OR a.g = 2",
    "NOT (EXISTS (SELECT 1 FROM loose b WHERE b.g = a.g) AND a.n > 2)",
    "a.n > (SELECT avg(n) FROM loose)",
    "a.n >= (SELECT min(b.n) FROM loose b WHERE b.g = a.g)",
    "a.n > ALL (SELECT n FROM loose WHERE g = 1)",
    "a.n <= ANY (SELECT b.n FROM loose b WHERE b.g = a.g)",
    "a.n = ANY (SELECT n FROM loose WHERE s = 'a')",
    "a.n BETWEEN (SELECT min(n) FROM loose WHERE g = 1) AND (SELECT max(n) FROM loose)",
];

/// Values of `a` with subqueries.
const SCALARS: &[&str] = &[
    "(SELECT max(n) FROM loose)",
    "(SELECT count(*) FROM loose b WHERE b.g = a.g)",
    "(SELECT sum(b.n) FROM loose b WHERE b.g = a.g AND b.n > 1)",
    "a.n IN (SELECT n FROM loose)",
    "a.n NOT IN (SELECT n FROM loose WHERE n > 2)",
    "EXISTS (SELECT 1 FROM loose b WHERE b.s = a.s AND b.n > 3)",
    "(SELECT b.s FROM keyed b WHERE b.k = a.g)",
    "(SELECT b.n FROM loose b WHERE b.g = a.g ORDER BY b.n DESC NULLS LAST LIMIT 1)",
    "CASE WHEN a.n < (SELECT max(n) FROM loose) THEN 'low' ELSE 'high' END",
];

const SETS: &[&str] = &["UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"];

const GROUPINGS: &[&str] =
    &["ROLLUP (g, s)", "CUBE (g, s)", "GROUPING SETS ((g), (s), ())", "GROUPING SETS ((g, s), (g), (g))"];

/// A random query. It may read one of the views that are there.
pub fn query(random: &mut Rng, views: &[(String, String)]) -> String {
    let table = pick(random, &["keyed", "loose", "grown"]);
    let other = pick(random, &["loose", "grown"]);
    let filter = pick(random, FILTERS);
    let having = pick(random, HAVINGS);
    match random.usize(0..26) {
        0 => format!("SELECT g, n + 1 AS n1, upper(s) AS u, d * 2 AS d2, coalesce(f, 0) AS f0 FROM {table}{filter}"),
        1 => format!("SELECT g, {} FROM {table}{filter} GROUP BY g{having}", aggregates(random)),
        2 => format!("SELECT g, s, {} FROM {table}{filter} GROUP BY g, s{having}", aggregates(random)),
        3 => format!("SELECT {} FROM {table}{filter}", aggregates(random)),
        4 => format!("SELECT g, s, {} FROM {table}{filter} GROUP BY {}", aggregates(random), pick(random, GROUPINGS)),
        5 => format!(
            "SELECT window_start, g, {} FROM TUMBLE({table}, at, INTERVAL '10 minutes'){filter} GROUP BY window_start, g",
            aggregates(random)
        ),
        6 => format!(
            "SELECT window_start, window_end, {} FROM HOP({table}, at, INTERVAL '4 minutes', INTERVAL '10 minutes'){filter} GROUP BY window_start, window_end{having}",
            aggregates(random)
        ),
        7 => format!("SELECT g, n FROM keyed{filter} {} SELECT g + 1, n FROM loose", pick(random, SETS)),
        8 => format!("(SELECT n FROM keyed {} SELECT n FROM loose) {} SELECT g FROM loose", pick(random, SETS), pick(random, SETS)),
        9 => format!(
            "SELECT a.g, a.n, b.n AS bn, b.s FROM {table} a {} {other} b ON {}",
            pick(random, JOINS),
            pick(random, ONS)
        ),
        10 => {
            format!("SELECT a.g, b.k, a.f FROM {table} a {} keyed b ON {}", pick(random, JOINS), pick(random, ONS))
        }
        11 => format!("SELECT a.g, count(*) AS c, sum(b.n) AS sn, max(b.s) AS ms FROM {table} a {} {other} b ON a.g = b.g GROUP BY a.g", pick(random, JOINS)),
        12 => "SELECT a.k, b.n, c.s FROM keyed a JOIN loose b ON a.g = b.g LEFT JOIN keyed c ON c.n = b.n AND c.k <> a.k WHERE a.n < 3".into(),
        13 => "SELECT a.k, b.n FROM keyed a, loose b WHERE a.n > b.n AND a.f < b.f AND a.g IN (SELECT g FROM loose WHERE n > 1)".into(),
        14 => format!("SELECT a.g, a.n, a.s FROM {table} a WHERE {}", pick(random, SUBQUERIES)),
        15 => format!("SELECT a.k, {} AS x FROM keyed a WHERE {}", pick(random, SCALARS), pick(random, SUBQUERIES)),
        16 => format!("SELECT a.k, {} AS x, {} AS y FROM keyed a", pick(random, SCALARS), pick(random, SCALARS)),
        17 => format!("SELECT k, g, {} AS x, {} AS y FROM keyed{filter}", pick(random, OVER), pick(random, OVER)),
        18 => "SELECT k, g, n, r FROM (SELECT k, g, n, row_number() OVER (PARTITION BY g ORDER BY n DESC, k) AS r FROM keyed) AS t WHERE r <= 2".into(),
        19 => pick(
            random,
            &[
                "SELECT k, n FROM keyed ORDER BY n DESC, k LIMIT 4 OFFSET 1",
                "SELECT g, n FROM keyed ORDER BY n DESC FETCH FIRST 3 ROWS WITH TIES",
                "SELECT DISTINCT ON (g) g, n, k FROM keyed ORDER BY g, n DESC NULLS LAST, k",
                "SELECT g, n, r FROM (SELECT g, n, row_number() OVER (PARTITION BY g ORDER BY n DESC, f, s, at, d) AS r FROM grown) AS t WHERE r <= 2",
                "SELECT g, n, r FROM (SELECT g, n, rank() OVER (PARTITION BY s ORDER BY n) AS r FROM grown) AS t WHERE r <= 3",
                "SELECT g, n, r FROM (SELECT g, n, dense_rank() OVER (ORDER BY n, g) AS r FROM loose) AS t WHERE r < 4 AND g > 0",
            ],
        )
        .into(),
        20 => pick(
            random,
            &[
                "SELECT k, unnest(ARRAY[g, k]) AS e FROM keyed",
                "SELECT t.k, x.e FROM keyed t, unnest(string_to_array(t.s, 'b')) AS x (e)",
                "SELECT t.k, i FROM keyed t, generate_series(1, t.g) AS x (i) WHERE i > 1",
                "SELECT t.k, v.name FROM keyed t JOIN (VALUES (1, 'one'), (2, 'two')) AS v (id, name) ON t.g = v.id",
            ],
        )
        .into(),
        21 => pick(
            random,
            &[
                "SELECT t.k, x.n FROM keyed t, LATERAL (SELECT b.n FROM loose b WHERE b.g = t.g ORDER BY b.n DESC NULLS LAST LIMIT 2) x",
                "SELECT t.k, x.m FROM keyed t LEFT JOIN LATERAL (SELECT max(b.n) AS m FROM loose b WHERE b.g = t.g) x ON true",
            ],
        )
        .into(),
        22 => format!(
            "WITH c AS (SELECT g, count(*) AS c FROM {table}{filter} GROUP BY g), m AS (SELECT max(c) AS m FROM c) SELECT c.g, c.c FROM c, m WHERE c.c = m.m"
        ),
        23 => format!("SELECT DISTINCT g, s FROM {table}{filter}"),
        24 => format!(
            "SELECT g, sum(c) AS total FROM (SELECT g, s, count(*) AS c FROM {table}{filter} GROUP BY g, s) AS inner_counts GROUP BY g"
        ),
        _ => match views.iter().find(|(_, query)| query.starts_with("SELECT g, ")) {
            Some((view, _)) => format!("SELECT g, count(*) AS c FROM {view} GROUP BY g"),
            None => format!("SELECT g, s, n FROM {table}{filter}"),
        },
    }
}

fn pick<'a>(random: &mut Rng, from: &[&'a str]) -> &'a str {
    from[random.usize(0..from.len())]
}

fn aggregates(random: &mut Rng) -> String {
    let chosen = random.choose_multiple(AGGREGATES, 3);
    chosen.iter().enumerate().map(|(at, call)| format!("{call} AS x{at}")).collect::<Vec<_>>().join(", ")
}

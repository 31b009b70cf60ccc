//! One round of changes to the eight tables, from a seed.
//!
//! New rows are old ones under new keys, and values are chosen so that the queries' narrow conditions meet some of them.
//! Nothing keeps references whole: an order may lose its customer, and a line item its order.

use fastrand::Rng;

const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/// Nations that queries name, and their neighbours.
const NATIONS: [&str; 7] = ["FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA", "CHINA", "INDIA"];

/// Brand, container, type and name of parts that queries look for.
const PARTS: [[&str; 4]; 5] = [
    ["Brand#12", "SM CASE", "STANDARD BRUSHED BRASS", "forest green linen"],
    ["Brand#23", "MED BOX", "ECONOMY ANODIZED STEEL", "forest lace"],
    ["Brand#23", "MED BAG", "LARGE PLATED BRASS", "dark green almond"],
    ["Brand#34", "LG PKG", "PROMO BURNISHED BRASS", "pale rose"],
    ["Brand#45", "JUMBO JAR", "MEDIUM POLISHED TIN", "forest snow"],
];

/// Order dates, one for each query's window or two.
const DATES: [&str; 6] = ["1993-08-10", "1993-11-02", "1994-03-05", "1995-02-20", "1995-09-12", "1996-02-01"];

/// Keys of each round's new orders start this far apart, beyond all others.
const ORDERS_APART: u64 = 10_000_000;

/// The statements, at most one for a table in each group.
pub struct Round {
    pub inserts: Vec<String>,
    pub updates: Vec<String>,
    /// Updates of keys.
    pub moves: Vec<String>,
    pub deletes: Vec<String>,
}

impl Round {
    /// The round with this number; the first is 1.
    pub fn new(number: u32, random: &mut Rng) -> Self {
        // New suppliers, parts and orders are copies of these, so that the copies meet again.
        let copied = Copied { supplier: random.u32(0..20), part: random.u32(0..100), order: random.u32(0..300) };
        Round {
            inserts: inserts(number, &copied, random),
            updates: updates(random),
            moves: moves(number, &copied),
            deletes: deletes(number, random),
        }
    }
}

/// Remainders of the keys that are copied.
struct Copied {
    supplier: u32,
    part: u32,
    order: u32,
}

fn inserts(number: u32, copied: &Copied, random: &mut Rng) -> Vec<String> {
    let Copied { supplier, part, order } = copied;
    let (region, nation) = (random.usize(0..REGIONS.len()), random.usize(0..NATIONS.len()));
    let orders_from = u64::from(number) * ORDERS_APART;
    vec![
        format!("INSERT INTO region VALUES ({}, '{}', 'new')", 100 + number, REGIONS[region]),
        format!("INSERT INTO nation VALUES ({}, '{}', {region}, 'new')", 100 + number, NATIONS[nation]),
        format!(
            "INSERT INTO part SELECT p_partkey + {number}0000, p_name, p_mfgr, p_brand, p_type, p_size, p_container,
               p_retailprice, p_comment FROM part WHERE p_partkey % 100 = {part} AND p_partkey <= 2000"
        ),
        format!(
            "INSERT INTO supplier SELECT s_suppkey + {number}000, s_name, s_address, {}, s_phone, s_acctbal + 10, s_comment
             FROM supplier WHERE s_suppkey % 20 = {supplier} AND s_suppkey <= 100",
            100 + number
        ),
        format!(
            "INSERT INTO partsupp SELECT ps_partkey + {number}0000, ps_suppkey, ps_availqty, ps_supplycost - 1, ps_comment
             FROM partsupp WHERE ps_partkey % 100 = {part} AND ps_partkey <= 2000"
        ),
        format!(
            "INSERT INTO customer SELECT c_custkey + {number}00000, c_name, c_address, c_nationkey, c_phone, c_acctbal * 2,
               c_mktsegment, c_comment FROM customer WHERE c_custkey % 100 = {} AND c_custkey <= 1500",
            random.u32(0..100)
        ),
        format!(
            "INSERT INTO orders SELECT o_orderkey + {orders_from}, o_custkey, o_orderstatus, o_totalprice, o_orderdate,
               o_orderpriority, o_clerk, o_shippriority, o_comment
             FROM orders WHERE o_orderkey % 300 = {order} AND o_orderkey < {ORDERS_APART}"
        ),
        format!(
            "INSERT INTO lineitem SELECT l_orderkey + {orders_from}, l_partkey, l_suppkey, l_linenumber, l_quantity,
               l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate,
               l_shipinstruct, l_shipmode, l_comment
             FROM lineitem WHERE l_orderkey % 300 = {order} AND l_orderkey < {ORDERS_APART}"
        ),
    ]
}

fn updates(random: &mut Rng) -> Vec<String> {
    let swapped = |column: &str, one: &str, other: &str| {
        format!("{column} = CASE {column} WHEN '{one}' THEN '{other}' ELSE '{one}' END")
    };
    let two = |names: &[&'static str], random: &mut Rng| {
        let chosen = random.choose_multiple(names.to_vec(), 2);
        (chosen[0], chosen[1])
    };
    let (region, region_other) = two(&REGIONS, random);
    let (nation, nation_other) = two(&NATIONS, random);
    let [brand, container, kind, name] = PARTS[random.usize(0..PARTS.len())];
    let comment = ["Customer is full of Complaints", "quiet"][random.usize(0..2)];
    let date = DATES[random.usize(0..DATES.len())];
    let shipped = DATES[random.usize(0..DATES.len())];
    let days = random.i32(-20..20);
    vec![
        format!(
            "UPDATE region SET {} WHERE r_name IN ('{region}', '{region_other}')",
            swapped("r_name", region, region_other)
        ),
        format!(
            "UPDATE nation SET n_regionkey = {}, {} WHERE n_name IN ('{nation}', '{nation_other}')",
            random.u32(0..5),
            swapped("n_name", nation, nation_other)
        ),
        format!(
            "UPDATE part SET p_brand = '{brand}', p_container = '{container}', p_type = '{kind}', p_name = '{name}',
               p_size = {} WHERE p_partkey % 40 = {}",
            [3, 9, 15][random.usize(0..3)],
            random.u32(0..40)
        ),
        format!(
            "UPDATE supplier SET s_nationkey = {}, s_acctbal = s_acctbal - 100, s_comment = '{comment}'
             WHERE s_suppkey % 13 = {}",
            random.u32(0..25),
            random.u32(0..13)
        ),
        format!(
            "UPDATE partsupp SET ps_availqty = ps_availqty / {}, ps_supplycost = {} WHERE ps_partkey % 30 = {}",
            random.u32(1..20),
            random.u32(1..1000),
            random.u32(0..30)
        ),
        format!(
            "UPDATE customer SET c_mktsegment = 'BUILDING', c_nationkey = {}, c_acctbal = c_acctbal + 500,
               c_phone = '{}' || substring(c_phone FROM 3) WHERE c_custkey % 40 = {}",
            random.u32(0..25),
            [13, 31, 29, 11][random.usize(0..4)],
            random.u32(0..40)
        ),
        format!(
            "UPDATE orders SET o_custkey = o_custkey + {}, o_orderdate = DATE '{date}', o_orderstatus = 'F',
               o_orderpriority = '1-URGENT', o_comment = 'special and other requests' WHERE o_orderkey % 150 = {}",
            random.u32(0..5),
            random.u32(0..150)
        ),
        format!(
            "UPDATE lineitem SET l_partkey = l_partkey * 7 % 2000, l_suppkey = 1 + l_suppkey % 100, l_quantity = {},
               l_returnflag = 'R', l_shipinstruct = 'DELIVER IN PERSON', l_shipmode = '{}', l_shipdate = DATE '{shipped}',
               l_commitdate = l_shipdate, l_receiptdate = CAST(l_shipdate + INTERVAL '{days}' DAY AS DATE)
             WHERE l_orderkey % 150 = {}",
            [2, 8, 25, 70][random.usize(0..4)],
            ["AIR", "MAIL"][random.usize(0..2)],
            random.u32(0..150)
        ),
    ]
}

fn moves(number: u32, copied: &Copied) -> Vec<String> {
    let supplier = copied.supplier;
    let last = u64::from(number - 1);
    let orders = format!("BETWEEN {} AND {}", last * ORDERS_APART, (last + 1) * ORDERS_APART - 1);
    let mut moves = vec![
        "UPDATE region SET r_regionkey = (r_regionkey + 1) % 5 WHERE r_regionkey < 5".into(),
        // To the new suppliers.
        format!(
            "UPDATE partsupp SET ps_suppkey = ps_suppkey + {number}000
             WHERE ps_suppkey % 20 = {supplier} AND ps_suppkey <= 100 AND ps_partkey % 3 = 0"
        ),
        format!("UPDATE customer SET c_custkey = c_custkey + 50000 WHERE c_custkey % 100000 = {}", 40 * number),
    ];
    if number > 1 {
        // The last round's line items go to the orders that they are copies of, its orders away from them.
        moves.push(format!(
            "UPDATE lineitem SET l_orderkey = l_orderkey - {}, l_linenumber = l_linenumber + {last}0
             WHERE l_orderkey {orders} AND l_linenumber % 2 = 1",
            last * ORDERS_APART
        ));
        moves.push(format!(
            "UPDATE orders SET o_orderkey = o_orderkey + {} WHERE o_orderkey {orders} AND o_custkey % 5 = 0",
            ORDERS_APART / 2
        ));
    }
    moves
}

fn deletes(number: u32, random: &mut Rng) -> Vec<String> {
    let mut one_of = |count: u32| random.u32(0..count);
    vec![
        // The new ones of two rounds ago: the old ones hold the queries' results together.
        format!("DELETE FROM region WHERE r_regionkey = {}", 98 + number),
        format!("DELETE FROM nation WHERE n_nationkey = {}", 98 + number),
        format!("DELETE FROM part WHERE p_partkey % 90 = {}", one_of(90)),
        format!("DELETE FROM supplier WHERE s_suppkey % 31 = {}", one_of(31)),
        format!("DELETE FROM partsupp WHERE ps_partkey % 50 = {} AND ps_availqty % 2 = 0", one_of(50)),
        format!("DELETE FROM customer WHERE c_custkey % 80 = {}", one_of(80)),
        format!("DELETE FROM orders WHERE o_orderkey % 200 = {}", one_of(200)),
        format!("DELETE FROM lineitem WHERE l_orderkey % 100 = {} OR l_partkey % 500 = {}", one_of(100), one_of(500)),
    ]
}

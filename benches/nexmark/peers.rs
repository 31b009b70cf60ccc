//! Other engines on the same files: DuckDB as one batch query, Flink as a stream.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Measured;
use super::queries::Query;

/// A peer's best run, without its start-up.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    pub cpu_s: f64,
}

/// One run of DuckDB; `None` if there is none, or if it does not know the query.
pub fn duckdb(input: &Path, query: &Query) -> Option<Measured> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/nexmark/duckdb_peer.py");
    let output = Command::new("python3").arg(script).arg(input).arg(query.name).stderr(Stdio::null()).output().ok()?;
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(Measured {
        cpu_s: told["cpu_s"].as_f64()?,
        wall_s: told["wall_s"].as_f64()?,
        peak_mb: told["peak_mb"].as_u64()?,
        ..Measured::default()
    })
}

/// Flink's best run of each query, if `FLINK_LAB` says where it is. One JVM runs them all, after a warm-up.
pub fn flink(input: &Path, asked: &[&Query], runs: usize) -> BTreeMap<String, Peer> {
    let Some(lab) = std::env::var_os("FLINK_LAB") else { return BTreeMap::new() };
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/bench/flink/run.sh");
    let runner = std::env::var_os("FLINK_RUNNER").map_or(beside, PathBuf::from);
    let (data, tiny) = (input.join("parts"), input.join("first-rows"));
    split(input, &data, usize::MAX).expect("the parts are written");
    split(input, &tiny, 2).expect("the parts are written");
    let views: Vec<String> = asked.iter().map(|query| query.view()).collect();
    let output = Command::new(&runner)
        .args(["--q", &views.join(","), "--warmup", "q0", "--runs", &runs.to_string(), "--minibatch", "off", "--data"])
        .arg(&data)
        .arg("--tiny")
        .arg(&tiny)
        .env("LAB", lab)
        .stderr(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", runner.display()));
    let mut best: BTreeMap<String, Peer> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(told) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let (Some(view), Some(cpu), Some(empty)) =
            (told["query"].as_str(), told["cpu_s"].as_f64(), told["empty_cpu_s"].as_f64())
        else {
            continue;
        };
        let peer = best.entry(view.to_string()).or_insert(Peer { cpu_s: f64::MAX });
        peer.cpu_s = peer.cpu_s.min(cpu - empty);
    }
    best
}

/// The first rows of each file, dealt in turn to two part files, since Flink reads a file with one task.
fn split(input: &Path, folder: &Path, rows: usize) -> std::io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    for name in ["person", "auction", "bid"] {
        let parts = folder.join(name);
        std::fs::create_dir_all(&parts)?;
        let create = |part: usize| std::fs::File::create(parts.join(format!("part-{part}.csv"))).map(BufWriter::new);
        let mut files = [create(0)?, create(1)?];
        let mut lines = BufReader::new(std::fs::File::open(input.join(format!("{name}.csv")))?);
        let mut line = Vec::new();
        for row in 0..rows {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            files[row % 2].write_all(&line)?;
        }
        files.iter_mut().try_for_each(Write::flush)?;
    }
    Ok(())
}

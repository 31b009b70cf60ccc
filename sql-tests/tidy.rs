//! The source keeps its own rules: layers, sizes, one owner for each foreign crate, no words that do not belong here.

use std::path::{Path, PathBuf};

/// Layers from low to high. A module uses only its own layer and lower ones.
const LAYERS: &[&[&str]] = &[
    &["types", "error"],
    &["state", "log", "sql", "connect", "window"],
    &["view", "operator", "catalog"],
    &["plan"],
    &["flow"],
    &["checkpoint"],
    &["config"],
    &["control"],
    &["session", "wire", "server", "demo", "main"],
];

/// Crates that one folder or file knows.
const OWNED: &[(&str, &[&str])] = &[
    ("pgwire::", &["src/wire/"]),
    ("arrow_pg::", &["src/wire/"]),
    ("sled::", &["src/state/sled.rs", "src/control/open.rs"]),
    ("crossbeam_epoch", &["src/state/sled.rs"]),
    ("nexmark::", &["src/connect/"]),
];

/// Lines of a file without its tests, at most.
const FILE_LINES_MAX: usize = 800;

/// Lines of a function, at most.
const FUNCTION_LINES_MAX: usize = 70;

#[test]
fn modules_use_only_lower_layers() {
    let mut broken = Vec::new();
    for (path, text) in sources("src") {
        let module = module_of(&path);
        let own = layer(&module);
        for used in text.lines().flat_map(uses) {
            match (own, layer(&used)) {
                (Some(own), Some(used_layer)) if used_layer > own => {
                    broken.push(format!("{path}: {module} uses {used}, which is above it"))
                }
                (_, None) => broken.push(format!("{path}: {used} is in no layer")),
                _ => {}
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn foreign_crates_have_one_owner() {
    let mut broken = Vec::new();
    for (path, text) in sources("src") {
        for (name, owners) in OWNED {
            let known = owners.iter().any(|owner| path.starts_with(owner));
            let named =
                |line: &str| !line.trim_start().starts_with("//") && line.contains(name) && !line.contains("crate::");
            if !known && code(&text).lines().any(named) {
                broken.push(format!("{path} knows {name}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn files_and_functions_stay_small() {
    let mut broken = Vec::new();
    for (path, text) in sources("src") {
        let lines: Vec<&str> = code(&text).lines().collect();
        if lines.len() > FILE_LINES_MAX {
            broken.push(format!("{path} has {} lines, at most {FILE_LINES_MAX}", lines.len()));
        }
        for (name, length) in functions(&lines) {
            if length > FUNCTION_LINES_MAX {
                broken.push(format!("{path}: {name} has {length} lines, at most {FUNCTION_LINES_MAX}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn words_that_do_not_belong() {
    let banned = [".unwrap()", "todo!(", "unimplemented!(", "dbg!("];
    let mut broken = Vec::new();
    for (path, text) in sources("src") {
        for (number, line) in code(&text).lines().enumerate() {
            let line_code = line.split("//").next().unwrap_or(line);
            for word in banned.iter().filter(|word| line_code.contains(**word)) {
                broken.push(format!("{path}:{}: {word}", number + 1));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn what_is_registered_is_there_and_what_is_there_is_registered() {
    for (folder, list, kind) in
        [("src/catalog/system", "src/catalog/system/mod.rs", "TABLE"), ("src/connect", "src/connect/mod.rs", "")]
    {
        let list = std::fs::read_to_string(root().join(list)).expect("the list is there");
        for (path, text) in sources(folder) {
            let declares = text.contains("pub static TABLE: Table") || text.contains("impl Connector for");
            let name = Path::new(&path).file_stem().expect("a file").to_string_lossy().into_owned();
            if declares && name != "mod" {
                assert!(list.contains(&format!("&{name}::")), "{path} declares a {kind} that the list does not have");
            }
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below a folder: path from the root, text.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs")
                && !path.ends_with("tests.rs")
                && !path.ends_with("contract.rs")
            {
                let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
                found.push((name, std::fs::read_to_string(&path).expect("text")));
            }
        }
    }
    assert!(!found.is_empty(), "there are files");
    found
}

/// The file without its unit tests.
fn code(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text)
}

fn module_of(path: &str) -> String {
    let inner = path.trim_start_matches("src/");
    inner.split('/').next().unwrap_or(inner).trim_end_matches(".rs").to_string()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Modules of ours that a line names.
fn uses(line: &str) -> Vec<String> {
    let line = line.split("//").next().unwrap_or(line);
    let after = |start: &str| -> Vec<String> {
        line.split(start)
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
            .filter(|name| !name.is_empty())
            .map(String::from)
            .collect()
    };
    after("crate::")
}

/// Name and length of each function, by its braces' indentation.
fn functions(lines: &[&str]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let is_function = [
            "fn ",
            "pub fn ",
            "async fn ",
            "pub async fn ",
            "pub(super) fn ",
            "pub(super) async fn ",
            "pub(crate) fn ",
        ]
        .iter()
        .any(|word| trimmed.starts_with(word));
        if !is_function || trimmed.ends_with(';') {
            continue;
        }
        let indent = line.len() - trimmed.len();
        let end = lines[start..].iter().position(|l| l.trim_end() == format!("{}}}", " ".repeat(indent)));
        let name = trimmed.split("fn ").nth(1).and_then(|rest| rest.split(['(', '<']).next()).unwrap_or_default();
        found.push((name.to_string(), end.map_or(1, |end| end + 1)));
    }
    found
}

//! The examples of the manual do what the manual says.
//!
//! On each page, blocks marked `sql` run in order on one fresh server. If the next block is marked `text`, the result of the
//! last statement must equal it, printed as psql prints a table; if it is marked `error`, the statement must fail with it.

use std::path::{Path, PathBuf};

use tokio_postgres::{Client, SimpleQueryMessage};

use super::server::{Server, block_on, describe};

#[test]
fn examples_hold() {
    let mut pages = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")];
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src"), &mut pages);
    pages.sort();
    let mut failures = Vec::new();
    let mut tested = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page is text");
        let blocks = blocks(&text);
        if blocks.iter().any(|block| block.kind == "sql") {
            tested += 1;
            if let Err(error) = block_on(run(&blocks)) {
                failures.push(format!("{}\n{error}", page.display()));
            }
        }
    }
    assert!(tested > 0, "the manual has examples");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

struct Block {
    kind: String,
    text: String,
    line: usize,
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the manual is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(kind) => {
                open = true;
                blocks.push(Block { kind: kind.trim().to_string(), text: String::new(), line: number + 1 });
            }
            None if open => {
                let block = blocks.last_mut().expect("opened above");
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    blocks
}

async fn run(blocks: &[Block]) -> Result<(), String> {
    let server = Server::start(&[]);
    let client = server.connect().await;
    for (number, block) in blocks.iter().enumerate().filter(|(_, block)| block.kind == "sql") {
        let wanted = blocks.get(number + 1).filter(|next| ["text", "error"].contains(&next.kind.as_str()));
        let shown = show(&client, &block.text).await;
        match (wanted, shown) {
            (Some(wanted), Ok(shown)) if wanted.kind == "text" => same(block, &wanted.text, &shown)?,
            (Some(wanted), Err(error)) if wanted.kind == "error" => same(block, &wanted.text, &error)?,
            (Some(wanted), Ok(shown)) => {
                return Err(format!("line {}: should fail with\n{}\nbut gives\n{shown}", block.line, wanted.text));
            }
            (_, Err(error)) => return Err(format!("line {}: {error}\n{}", block.line, block.text)),
            (None, Ok(_)) => {}
        }
    }
    Ok(())
}

fn same(block: &Block, wanted: &str, found: &str) -> Result<(), String> {
    let trim = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_string();
    if trim(wanted) == trim(found) {
        Ok(())
    } else {
        Err(format!("line {}: the page says\n{wanted}\nthe server says\n{found}", block.line))
    }
}

/// The last statement's result as psql prints it, or the error.
async fn show(client: &Client, sql: &str) -> Result<String, String> {
    let messages = client.simple_query(sql).await.map_err(|error| describe(&error))?;
    let (mut names, mut table) = (Vec::new(), Vec::new());
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                names = columns.iter().map(|column| column.name().to_string()).collect();
                table.clear();
            }
            SimpleQueryMessage::Row(row) => {
                table.push((0..row.len()).map(|c| row.get(c).unwrap_or_default().to_string()).collect::<Vec<String>>());
            }
            _ => {}
        }
    }
    Ok(print(&names, &table))
}

fn print(names: &[String], table: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = table.iter().map(|row| row[column].chars().count());
        cells.chain([names[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let is_number = |column: usize| {
        let number = |cell: &String| cell.is_empty() || cell.parse::<f64>().is_ok();
        !table.is_empty()
            && table.iter().all(|row| number(&row[column]))
            && table.iter().any(|row| !row[column].is_empty())
    };
    let numbers: Vec<bool> = (0..names.len()).map(is_number).collect();
    let header: Vec<String> = names.iter().zip(&widths).map(|(name, width)| format!(" {name:^width$} ")).collect();
    let mut lines =
        vec![header.join("|"), widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("+")];
    for row in table {
        let cells = row.iter().zip(&widths).zip(&numbers).map(|((cell, width), number)| {
            if *number { format!(" {cell:>width$} ") } else { format!(" {cell:<width$} ") }
        });
        lines.push(cells.collect::<Vec<_>>().join("|"));
    }
    lines.join("\n")
}

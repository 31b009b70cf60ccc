//! Text of an array: `{1,NULL,"a b",{2,3}}`.

/// The elements as text, `None` for NULL; elements that are arrays keep their braces. `None` if the text is no array.
pub fn items(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    let mut chars = inner.chars().peekable();
    if inner.trim().is_empty() {
        return Some(items);
    }
    loop {
        let (mut item, mut depth, mut quoted) = (String::new(), 0, false);
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        loop {
            match chars.next() {
                None if depth == 0 => {
                    items.push(finished(item, quoted)?);
                    return Some(items);
                }
                None => return None,
                Some(',') if depth == 0 => break,
                Some('"') => {
                    quoted = true;
                    quote(&mut chars, &mut item, depth > 0)?;
                }
                Some('\\') => item.push(chars.next()?),
                Some('}') if depth == 0 => return None,
                Some(c) => {
                    depth = depth + i32::from(c == '{') - i32::from(c == '}');
                    item.push(c);
                }
            }
        }
        items.push(finished(item, quoted)?);
    }
}

/// Reads to the closing quote. Inside an inner array, quotes and escapes are kept for later.
fn quote(chars: &mut std::iter::Peekable<std::str::Chars>, item: &mut String, keep: bool) -> Option<()> {
    if keep {
        item.push('"');
    }
    loop {
        match chars.next()? {
            '"' => break,
            '\\' => {
                if keep {
                    item.push('\\');
                }
                item.push(chars.next()?);
            }
            c => item.push(c),
        }
    }
    if keep {
        item.push('"');
    }
    Some(())
}

fn finished(item: String, quoted: bool) -> Option<Option<String>> {
    if quoted {
        return Some(Some(item));
    }
    let item = item.trim_end();
    match () {
        () if item.is_empty() => None,
        () if item.eq_ignore_ascii_case("null") => Some(None),
        () => Some(Some(item.to_string())),
    }
}

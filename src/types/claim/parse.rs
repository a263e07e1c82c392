//! From a text to a canonical claim. Owns the syntax: what is refused, what braces expand to.

use super::pattern::Pattern;
use super::segment::Segment;

/// The canonical text of the claim of everything.
pub(super) const WHOLE: &str = ".";

/// PATH_MAX on Linux: a longer text cannot name a file.
const TEXT_BYTES_MAX: usize = 4096;

/// Alternatives one claim may expand to; each is matched by itself.
const ALTERNATIVES_MAX: usize = 256;

/// Characters that make a text a glob rather than a plain path.
const GLOB_CHARACTERS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// A canonical text and, for a glob, its alternatives.
pub(super) struct Parsed {
    pub(super) text: String,
    pub(super) patterns: Vec<Pattern>,
}

/// The error is the half sentence after `claim "..."`.
pub(super) fn parse(text: &str) -> Result<Parsed, String> {
    check_text(text)?;
    let text = canonical(text);
    if text.is_empty() || text == "**" {
        return Ok(Parsed {
            text: WHOLE.to_owned(),
            patterns: Vec::new(),
        });
    }
    if !text.contains(GLOB_CHARACTERS) {
        check_names(&text)?;
        return Ok(Parsed {
            text,
            patterns: Vec::new(),
        });
    }
    let mut alternatives = Vec::new();
    expand(&text, &mut alternatives)?;
    let patterns = alternatives
        .iter()
        .map(|alternative| pattern(alternative))
        .collect::<Result<_, _>>()?;
    Ok(Parsed { text, patterns })
}

fn check_text(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("is empty: name a path, or \".\" for the whole repository".to_owned());
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("is longer than {TEXT_BYTES_MAX} bytes"));
    }
    if text.starts_with('/') {
        return Err("is absolute: write it relative to the top of the repository".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("has a control character".to_owned());
    }
    Ok(())
}

/// Without `.` segments and doubled slashes; a trailing slash stays, as the mark of a folder.
fn canonical(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for name in names(text) {
        if !out.is_empty() {
            out.push('/');
        }
        out.push_str(name);
    }
    if !out.is_empty() && (text.ends_with('/') || text.ends_with("/.")) {
        out.push('/');
    }
    out
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
}

fn check_names(text: &str) -> Result<(), String> {
    for name in names(text) {
        if name == ".." {
            return Err("has \"..\": write it relative to the top of the repository".to_owned());
        }
        if name.eq_ignore_ascii_case(".git") {
            return Err("is in .git, which is git's own: claim files of the work tree".to_owned());
        }
    }
    Ok(())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    check_names(text)?;
    let mut segments = names(text)
        .map(Segment::parse)
        .collect::<Result<Vec<_>, _>>()?;
    // Doubled `**` says nothing that one does not, and costs matching time.
    segments.dedup_by(|next, last| next.is_any_depth() && last.is_any_depth());
    if segments.is_empty() {
        return Err("has an empty alternative: write \".\" for the whole repository".to_owned());
    }
    for name in segments.iter().filter_map(Segment::literal) {
        // An escape can spell what the check above looks for.
        check_names(name)?;
    }
    Ok(Pattern::new(segments, text.ends_with('/')))
}

/// Writes out `{a,b}` into `out`, nested braces included.
fn expand(text: &str, out: &mut Vec<String>) -> Result<(), String> {
    let Some(brace) = find_braces(text)? else {
        if out.len() >= ALTERNATIVES_MAX {
            return Err(format!(
                "has more than {ALTERNATIVES_MAX} alternatives: claim a folder"
            ));
        }
        out.push(text.to_owned());
        return Ok(());
    };
    for alternative in &brace.alternatives {
        expand(
            &format!("{}{alternative}{}", brace.before, brace.after),
            out,
        )?;
    }
    Ok(())
}

/// The first top-level pair of braces of a text.
struct Braces<'a> {
    before: &'a str,
    alternatives: Vec<&'a str>,
    after: &'a str,
}

fn find_braces(text: &str) -> Result<Option<Braces<'_>>, String> {
    let mut depth = 0_usize;
    let mut open = 0;
    let mut start = 0;
    let mut alternatives = Vec::new();
    let mut class = false;
    let mut escaped = false;
    let slice = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if !class => escaped = true,
            '[' if !class => class = true,
            ']' => class = false,
            _ if class => {}
            '{' => {
                if depth == 0 {
                    open = at;
                    start = at + 1;
                }
                depth += 1;
            }
            ',' if depth == 1 => {
                alternatives.push(slice(start, at));
                start = at + 1;
            }
            '}' if depth == 0 => {
                return Err(
                    "has a \"}\" without a \"{\": write \"\\}\" for the character".to_owned(),
                );
            }
            '}' => {
                depth -= 1;
                if depth == 0 {
                    alternatives.push(slice(start, at));
                    return Ok(Some(Braces {
                        before: slice(0, open),
                        alternatives,
                        after: slice(at + 1, text.len()),
                    }));
                }
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("has a \"{\" that is not closed: write \"\\{\" for the character".to_owned());
    }
    Ok(None)
}

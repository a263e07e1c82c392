//! A Rust file as tokens: comments and literals are gone, inline modules are known. Not a parser.

/// One token of code.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    /// An identifier, or one punctuation character; `::` is two tokens.
    pub(super) text: String,
    /// From 1.
    pub(super) line: usize,
    /// How many modules deep: 0 in `src/lib.rs`, 1 in `src/a.rs`, one more in its `mod tests`.
    pub(super) depth: usize,
    /// Whether it lies in a module called `tests`, or in a file of tests.
    pub(super) in_tests: bool,
}

/// One file.
pub(super) struct Source {
    /// Relative to the repository, with `/`.
    pub(super) path: String,
    /// As it is on disk.
    pub(super) text: String,
    /// Its code.
    pub(super) tokens: Vec<Token>,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            tokens: tokens(path, &blank(text)),
        }
    }

    /// The top-level module a file of `src/` belongs to; none for `lib.rs` and `main.rs`.
    pub(super) fn layer(&self) -> Option<&str> {
        let rest = self.path.strip_prefix("src/")?;
        let first = rest.split('/').next()?.trim_end_matches(".rs");
        (first != "lib" && first != "main").then_some(first)
    }

    /// Names of functions under a `#[test]`-like attribute.
    pub(super) fn test_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let text = |at: usize| self.tokens.get(at).map_or("", |t| t.text.as_str());
        for at in 0..self.tokens.len() {
            // `#[test]` and `#[tokio::test(…)]`: the name `test` before `]` or `(`.
            let is_attribute = text(at) == "test" && matches!(text(at + 1), "]" | "(");
            if !is_attribute || !matches!(text(at.wrapping_sub(1)), "[" | ":") {
                continue;
            }
            let after = (at + 1..self.tokens.len()).find(|&i| text(i) == "fn" || text(i) == "}");
            if let Some(i) = after.filter(|&i| text(i) == "fn") {
                names.push(text(i + 1).to_owned());
            }
        }
        names
    }
}

/// Replaces comments, strings and character literals by blanks; lines stay where they are.
pub(super) fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end > at {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// Where the comment or literal that starts at `at` ends; `at` itself when none starts there.
fn literal_end(chars: &[char], at: usize) -> usize {
    let get = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let starts_word = at == 0 || !(get(at - 1).is_alphanumeric() || get(at - 1) == '_');
    match (get(at), get(at + 1)) {
        ('/', '/') => (at..chars.len())
            .find(|&i| chars[i] == '\n')
            .unwrap_or(chars.len()),
        ('/', '*') => block_comment_end(chars, at),
        ('"', _) => quoted_end(chars, at, '"'),
        ('b' | 'c', '"') if starts_word => quoted_end(chars, at + 1, '"'),
        ('b', '\'') if starts_word => quoted_end(chars, at + 1, '\''),
        ('r', '"' | '#') if starts_word => raw_end(chars, at, at + 1),
        ('b' | 'c', 'r') if starts_word => raw_end(chars, at, at + 2),
        // A lifetime has no closing quote one character (or one escape) further on.
        ('\'', '\\') => quoted_end(chars, at, '\''),
        ('\'', _) if get(at + 2) == '\'' => at + 3,
        _ => at,
    }
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let mut open = 0usize;
    let mut i = at;
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => {
                open += 1;
                i += 2;
            }
            ('*', '/') => {
                open -= 1;
                i += 2;
                if open == 0 {
                    return i;
                }
            }
            _ => i += 1,
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], open: usize, quote: char) -> usize {
    let mut i = open + 1;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            c if c == quote => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

/// `start` is where the prefix begins, `hashes` where the first `#` or the quote is.
fn raw_end(chars: &[char], start: usize, hashes: usize) -> usize {
    let count = chars[hashes.min(chars.len())..]
        .iter()
        .take_while(|&&c| c == '#')
        .count();
    if chars.get(hashes + count) != Some(&'"') {
        return start; // A raw identifier, or just a name that starts with these letters.
    }
    let mut i = hashes + count + 1;
    while i < chars.len() {
        let closes = chars[i] == '"'
            && chars[i + 1..]
                .iter()
                .take(count)
                .filter(|&&c| c == '#')
                .count()
                == count;
        if closes {
            return i + 1 + count;
        }
        i += 1;
    }
    chars.len()
}

/// Depth of the module that a file is: `src/lib.rs` 0, `src/a.rs` and `src/a/mod.rs` 1, `src/a/b.rs` 2.
fn file_depth(path: &str) -> usize {
    let names: Vec<&str> = path.split('/').skip(1).collect();
    match names.last() {
        Some(&("lib.rs" | "main.rs" | "mod.rs")) => names.len() - 1,
        // `a_tests.rs` is the `mod tests` of `a.rs`, kept beside it.
        Some(name) if name.ends_with("_tests.rs") => names.len() + 1,
        _ => names.len(),
    }
}

fn tokens(path: &str, code: &str) -> Vec<Token> {
    let tests_file = path.starts_with("tests/")
        || path.ends_with("/tests.rs")
        || path.contains("/tests/")
        || path.ends_with("_tests.rs");
    let mut found: Vec<Token> = Vec::new();
    let mut braces: Vec<Option<bool>> = Vec::new(); // Some(is tests) for a module's brace.
    for (number, line) in code.lines().enumerate() {
        for text in words(line) {
            let previous = |back: usize| {
                found
                    .len()
                    .checked_sub(back)
                    .map_or("", |i| found[i].text.as_str())
            };
            if text == "{" {
                let is_module = previous(2) == "mod";
                braces.push(is_module.then(|| previous(1) == "tests"));
            } else if text == "}" {
                braces.pop();
            }
            found.push(Token {
                depth: file_depth(path) + braces.iter().flatten().count(),
                in_tests: tests_file || braces.iter().flatten().any(|&tests| tests),
                text,
                line: number + 1,
            });
        }
    }
    found
}

fn words(line: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut in_word = false;
    for c in line.chars() {
        let is_word = c.is_alphanumeric() || c == '_';
        match all.last_mut() {
            Some(word) if is_word && in_word => word.push(c),
            _ if c.is_whitespace() => {}
            _ => all.push(c.to_string()),
        }
        in_word = is_word;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tidy_comments_and_literals_are_no_code() {
        let code = "a /* b /* c */ d */ e \"f\\\"g\" r#\"h\"i\"# 'j' '\\'' b\"k\" &'l m // n\no";
        let found: Vec<String> = tokens("src/x.rs", &blank(code))
            .into_iter()
            .map(|t| t.text)
            .collect();
        assert_eq!(found, ["a", "e", "&", "'", "l", "m", "o"]);
    }

    #[test]
    fn tidy_inline_modules_are_deeper_and_tests_are_known() {
        let source = Source::new("src/a/b.rs", "one mod tests { two } three");
        let of = |text: &str| {
            source
                .tokens
                .iter()
                .find(|t| t.text == text)
                .unwrap()
                .clone()
        };
        assert_eq!((of("one").depth, of("one").in_tests), (2, false));
        assert_eq!((of("two").depth, of("two").in_tests), (3, true));
        assert_eq!((of("three").depth, of("three").in_tests), (2, false));
    }

    #[test]
    fn tidy_test_functions_are_known_by_their_attribute() {
        let text = "#[test] fn a() {} fn b() {} #[tokio::test(start_paused = true)] async fn c() {} \
                    proptest! { #[test] #[expect(x, reason = \"y\")] fn d(n in 0..3u8) {} }";
        assert_eq!(Source::new("src/x.rs", text).test_names(), ["a", "c", "d"]);
    }
}

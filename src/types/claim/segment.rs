//! One segment of a glob: a name, or a pattern of names. Owns matching and intersecting two.

/// One segment between slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// A name, escapes resolved.
    Literal(Box<str>),
    /// A pattern of names.
    Glob {
        /// What it matches.
        tokens: Box<[Token]>,
        /// As written when it has a class: `[id]` is also the name of a folder.
        spelled: Option<Box<str>>,
    },
    /// `**`: any number of segments, none included.
    AnyDepth,
}

/// One element of a pattern of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Char(char),
    AnyChar,
    AnyText,
    Class {
        negated: bool,
        ranges: Box<[(char, char)]>,
    },
}

/// Whether names that differ only in ASCII case are one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Exact,
    Folded,
}

impl Segment {
    /// Reads a segment; the error is the half sentence after `claim "..."`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text == "**" {
            return Ok(Self::AnyDepth);
        }
        let mut tokens = Vec::new();
        let mut rest = text.chars();
        let mut class = false;
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' if tokens.last() == Some(&Token::AnyText) => continue,
                '*' => Token::AnyText,
                '?' => Token::AnyChar,
                '[' => {
                    class = true;
                    parse_class(&mut rest)?
                }
                '\\' => Token::Char(rest.next().ok_or("ends a segment with \"\\\"")?),
                c => Token::Char(c),
            });
        }
        let name: Option<String> = tokens.iter().map(Token::as_char).collect();
        Ok(match name {
            Some(name) => Self::Literal(name.into_boxed_str()),
            None => Self::Glob {
                tokens: tokens.into_boxed_slice(),
                spelled: class.then(|| Box::from(text)),
            },
        })
    }

    pub(super) fn is_any_depth(&self) -> bool {
        *self == Self::AnyDepth
    }

    /// The name, if it is one.
    pub(super) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(name) => Some(name),
            Self::Glob { .. } | Self::AnyDepth => None,
        }
    }

    /// Whether it is a pattern that ends in `.` and letters, so that it means files.
    pub(super) fn names_files(&self) -> bool {
        let Self::Glob { tokens, .. } = self else {
            return false;
        };
        let mut letters = 0_usize;
        for token in tokens.iter().rev() {
            match token {
                Token::Char('.') => return letters > 0,
                Token::Char(c) if c.is_alphanumeric() => letters += 1,
                _ => return false,
            }
        }
        false
    }

    /// Whether a name is matched. `**` matches every name.
    pub(super) fn matches(&self, name: &str, case: Case) -> bool {
        match self {
            Self::AnyDepth => true,
            Self::Literal(own) => equal(own, name, case),
            Self::Glob { tokens, spelled } => {
                matches(tokens, name, case)
                    || spelled.as_ref().is_some_and(|own| equal(own, name, case))
            }
        }
    }

    /// Whether some name is matched by both, ASCII case folded; unsure is yes.
    pub(super) fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::AnyDepth, _) | (_, Self::AnyDepth) => true,
            (Self::Literal(name), glob) | (glob, Self::Literal(name)) => {
                glob.matches(name, Case::Folded)
            }
            (
                Self::Glob { tokens, spelled },
                Self::Glob {
                    tokens: their_tokens,
                    spelled: their_spelled,
                },
            ) => {
                tokens_meet(tokens, their_tokens)
                    || spelled
                        .as_ref()
                        .is_some_and(|name| other.matches(name, Case::Folded))
                    || their_spelled
                        .as_ref()
                        .is_some_and(|name| self.matches(name, Case::Folded))
            }
        }
    }
}

impl Token {
    fn as_char(&self) -> Option<char> {
        match self {
            Self::Char(c) => Some(*c),
            _ => None,
        }
    }

    fn takes(&self, c: char, case: Case) -> bool {
        match self {
            Self::AnyChar | Self::AnyText => true,
            Self::Char(own) => *own == c || (case == Case::Folded && own.eq_ignore_ascii_case(&c)),
            Self::Class { negated, ranges } => {
                let holds = |c: char| {
                    ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
                };
                holds(c)
                    || (case == Case::Folded
                        && (holds(c.to_ascii_lowercase()) || holds(c.to_ascii_uppercase())))
            }
        }
    }

    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Char(c), token) | (token, Self::Char(c)) => token.takes(*c, Case::Folded),
            // Two classes: taken to share a character.
            _ => true,
        }
    }
}

fn parse_class(rest: &mut std::str::Chars<'_>) -> Result<Token, String> {
    let unclosed = || "has a \"[\" that is not closed: write \"\\[\" for the character".to_owned();
    let mut next = rest.next().ok_or_else(unclosed)?;
    let negated = matches!(next, '!' | '^');
    if negated {
        next = rest.next().ok_or_else(unclosed)?;
    }
    let mut ranges = Vec::new();
    loop {
        let low = next;
        next = rest.next().ok_or_else(unclosed)?;
        let mut high = low;
        if next == '-' && !rest.as_str().starts_with(']') {
            high = rest.next().ok_or_else(unclosed)?;
            next = rest.next().ok_or_else(unclosed)?;
            if high < low {
                return Err(format!("has the range {low}-{high}, which goes backwards"));
            }
        }
        ranges.push((low, high));
        if next == ']' {
            return Ok(Token::Class {
                negated,
                ranges: ranges.into_boxed_slice(),
            });
        }
    }
}

/// Whether two names are the same, ASCII case folded.
pub(super) fn same_name(left: &[u8], right: &[u8]) -> bool {
    left.eq_ignore_ascii_case(right)
}

fn equal(left: &str, right: &str, case: Case) -> bool {
    match case {
        Case::Exact => left == right,
        Case::Folded => same_name(left.as_bytes(), right.as_bytes()),
    }
}

/// Greedy matching with one point to return to: enough, as only `*` has a free length.
fn matches(tokens: &[Token], name: &str, case: Case) -> bool {
    let mut at = 0;
    let mut rest = name.chars();
    let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        if let Some(Token::AnyText) = tokens.get(at) {
            at += 1;
            retry = Some((at, rest.clone()));
            continue;
        }
        let here = rest.clone().next();
        match (tokens.get(at), here) {
            (None, None) => return true,
            (Some(token), Some(c)) if token.takes(c, case) => {
                at += 1;
                rest.next();
            }
            _ => {
                let Some((after_star, from)) = retry.as_mut() else {
                    return false;
                };
                if from.next().is_none() {
                    return false;
                }
                at = *after_star;
                rest = from.clone();
            }
        }
    }
}

/// Whether some text is matched by both: the product of the two automata, from their ends.
fn tokens_meet(left: &[Token], right: &[Token]) -> bool {
    let mut below: Vec<bool> = Vec::new();
    for i in (0..=left.len()).rev() {
        let mut row = vec![false; right.len() + 1];
        for j in (0..=right.len()).rev() {
            let right_next = row.get(j + 1).copied().unwrap_or(false);
            let left_next = below.get(j).copied().unwrap_or(false);
            let both_next = below.get(j + 1).copied().unwrap_or(false);
            let meets = match (left.get(i), right.get(j)) {
                (None, None) => true,
                (Some(Token::AnyText), _) | (_, Some(Token::AnyText)) => {
                    // One star skips itself or swallows what the other side has next.
                    let other_is_done = left.get(i).is_none() || right.get(j).is_none();
                    if other_is_done {
                        if left.get(i).is_some() {
                            left_next
                        } else {
                            right_next
                        }
                    } else {
                        left_next || right_next
                    }
                }
                (Some(mine), Some(theirs)) => mine.meets(theirs) && both_next,
                (None, Some(_)) | (Some(_), None) => false,
            };
            if let Some(cell) = row.get_mut(j) {
                *cell = meets;
            }
        }
        below = row;
    }
    below.first().copied().unwrap_or(false)
}

//! The known word that a mistyped one was meant to be.

/// The nearest of `known`, when it is near enough to be worth a suggestion.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count().max(3) / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `unknown key` with the nearest known key, or with all of them when none is near.
pub(super) fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("unknown {what} {word:?}, did you mean {near:?}?"),
        None if known.is_empty() => format!("unknown {what} {word:?}, there is none yet"),
        None => format!("unknown {what} {word:?}, known are {}", known.join(", ")),
    }
}

/// Edits (insert, delete, replace, swap of neighbours) between two words, case ignored.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let at = |row: &[usize], i: usize| row.get(i).copied().unwrap_or(usize::MAX / 2);
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            let mut best = (at(&last, j) + usize::from(ca != cb))
                .min(at(&last, j + 1) + 1)
                .min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(cb) && b.get(j - 1) == Some(ca);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word_and_a_stranger_does_not() {
        for (word, expected) in [
            ("taks", Some("tasks")),
            ("task", Some("tasks")),
            ("worker", Some("workers")),
            ("Global_Concurency", Some("global_concurrency")),
            ("colour", None),
        ] {
            assert_eq!(
                nearest(word, ["tasks", "workers", "global_concurrency"]),
                expected,
                "{word}"
            );
        }
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}

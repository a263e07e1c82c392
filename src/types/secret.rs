//! Known shapes of access tokens, masked before a text goes into the state (design §5). A shape that is
//! not known passes: this is a net under careful programs, not a licence to print secrets.

/// How tokens of well-known services begin.
const BEGINNINGS: [&str; 14] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
];
/// A word that begins so and goes on for at least so many characters is a token.
const REST_CHARS_MIN: usize = 12;
/// What stands in its place.
const MASK: &str = "[masked]";

/// The text with every word of a known token shape replaced.
#[must_use]
pub fn mask_secrets(text: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest
            .find(|c: char| part(c) != part(first))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let is_token = BEGINNINGS.iter().any(|beginning| {
            word.strip_prefix(beginning)
                .is_some_and(|more| more.chars().count() >= REST_CHARS_MIN)
        });
        out.push_str(if is_token { MASK } else { word });
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::mask_secrets;

    #[test]
    fn known_token_shapes_are_masked_and_words_are_not() {
        let check = |text: &str, expected: &str| assert_eq!(mask_secrets(text), expected);
        check("", "");
        check(
            "task-force sk-1 is fine, ünïcode too",
            "task-force sk-1 is fine, ünïcode too",
        );
        check("key=sk-ant-api03-abcdefghijklmnop!", "key=[masked]!");
        check("(ghp_0123456789abcdefghij)", "([masked])");
        check("Bearer eyJhbGciOiJIUzI1NiJ9.e30.x", "Bearer [masked]");
        check("AKIAIOSFODNN7EXAMPLE and AKIA", "[masked] and AKIA");
    }
}

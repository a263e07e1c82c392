//! Tests of claims: syntax, overlap, cover, and the properties that P5 rests on.

use super::{ClaimPath, ClaimSet};
use proptest::prelude::*;

fn claim(text: &str) -> ClaimPath {
    ClaimPath::parse(text).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn claims_are_canonical() {
    for (text, canonical) in [
        ("a", "a"),
        ("./a//b/./c", "a/b/c"),
        ("src/", "src/"),
        ("src/.", "src/"),
        (".", "."),
        ("./", "."),
        ("**", "."),
        ("a b/ü.rs", "a b/ü.rs"),
        ("src/**/*.{rs,toml}", "src/**/*.{rs,toml}"),
        (".github/x", ".github/x"),
    ] {
        assert_eq!(claim(text).as_str(), canonical, "{text}");
        assert_eq!(claim(canonical).as_str(), canonical);
    }
}

#[test]
fn behaviour_101_paths_outside_the_repository_are_refused() {
    for (text, part) in [
        ("", "empty"),
        ("  ", "empty"),
        ("/etc/passwd", "absolute"),
        ("/", "absolute"),
        ("..", ".."),
        ("a/../b", ".."),
        ("a/{b,..}/c", ".."),
        ("a/\\.\\./b", ".."),
        (".git", ".git"),
        (".GIT/config", ".git"),
        ("sub/.git/x", ".git"),
        ("./.git", ".git"),
        ("{.git,a}/x", ".git"),
        ("a\0b", "control"),
        ("a\nb", "control"),
        ("a[b", "not closed"),
        ("a{b", "not closed"),
        ("a}b", "without"),
        ("a\\", "\\"),
        ("[z-a]", "backwards"),
        ("{,}", "empty alternative"),
        (
            "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
            "alternatives",
        ),
    ] {
        let error = ClaimPath::parse(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
    assert!(ClaimPath::parse(&"x".repeat(5000)).is_err());
}

#[track_caller]
fn check_overlap(left: &str, right: &str, expected: bool) {
    assert_eq!(
        claim(left).overlaps(&claim(right)),
        expected,
        "{left} {right}"
    );
    assert_eq!(
        claim(right).overlaps(&claim(left)),
        expected,
        "{right} {left}"
    );
}

#[test]
fn behaviour_098_a_folder_overlaps_what_is_below_on_segment_boundaries() {
    check_overlap("src", "src/lib.rs", true);
    check_overlap("src/", "src/lib.rs", true);
    check_overlap("src/", "src", true);
    check_overlap("src", "src2", false);
    check_overlap("src/a", "src/ab", false);
    check_overlap("src/lib.rs", "src/lib", false);
    check_overlap("a/b/c", "a/b", true);
    check_overlap(".", "anything/at/all", true);
    check_overlap("Src/Lib.rs", "src/lib.rs", true);
    check_overlap("src/a", "tests/a", false);
}

#[test]
fn p5_globs_overlap_paths_and_globs_either_way_round() {
    for (left, right, expected) in [
        ("src/*.rs", "src/lib.rs", true),
        ("src/*.rs", "src/sub/lib.rs", false),
        ("src/*.rs", "src", true),
        ("src/*.rs", "src/lib.toml", false),
        ("src/**", "src/a/b/c.rs", true),
        ("src/**", "src", true),
        ("src/**", "tests/a", false),
        ("src/**/*.rs", "src/lib.rs", true),
        ("src/**/*.rs", "src/a/lib.RS", true),
        ("src/**/*.rs", "docs/**/*.rs", false),
        ("**/*.md", "src/**/*.rs", false),
        ("**/*.md", "src/**/*.md", true),
        ("**/mod.rs", "src/a/*.rs", true),
        ("*.rs", "src/*.rs", false),
        ("src/*", "src/a/b.rs", true),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("a*c", "ab*", true),
        ("a*c", "b*c", false),
        ("*a*", "*b*", true),
        ("src/{a,b}.rs", "src/b.rs", true),
        ("src/{a,b}.rs", "src/{c,d}.rs", false),
        ("{src/a,tests}/x", "src/a/x/y", true),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", true),
        ("app/[id]/page.tsx", "app/i/page.tsx", true),
        ("app/\\[id\\]/page.tsx", "app/[id]/page.tsx", true),
        ("app/\\[id\\]/page.tsx", "app/i/page.tsx", false),
        ("[a-c]x", "bx", true),
        ("[a-c]x", "dx", false),
        ("[!a-c]x", "dx", true),
        ("[A-C]x", "bX", true),
        ("Docs/*.md", "docs/a.md", true),
        ("*/Cargo.toml", "a/b/Cargo.toml", false),
    ] {
        check_overlap(left, right, expected);
    }
}

#[test]
fn p5_a_claim_covers_its_files() {
    for (text, path, expected) in [
        (".", "a/b", true),
        ("src", "src", true),
        ("src/", "src/a/b", true),
        ("src", "src2", false),
        ("src", "SRC/a", false),
        ("src/*.rs", "src/a.rs", true),
        ("src/*.rs", "src/a/b.rs", false),
        ("src/*", "src/a/b.rs", true),
        ("src/**", "src/a/b.rs", true),
        ("src/**/x.rs", "src/x.rs", true),
        ("src/**/x.rs", "src/a/b/x.rs", true),
        ("src/{a,b}/*.rs", "src/b/x.rs", true),
        ("src/{a,b}/*.rs", "src/c/x.rs", false),
        ("app/[id]/p.tsx", "app/[id]/p.tsx", true),
        ("*.ü?", "x.üé", true),
    ] {
        assert_eq!(claim(text).covers(path), expected, "{text} {path}");
    }
}

#[test]
fn sets_keep_order_and_report_the_first_overlap() {
    let set = ClaimSet::parse(["b", "a", "./b"]).unwrap();
    assert_eq!(set.to_string(), "b, a");
    assert_eq!(serde_json::to_string(&set).unwrap(), r#"["b","a"]"#);
    assert_eq!(
        serde_json::from_str::<ClaimSet>(r#"["b","a"]"#).unwrap(),
        set
    );
    assert!(serde_json::from_str::<ClaimSet>(r#"["../b"]"#).is_err());
    let other = ClaimSet::parse(["c", "a/x"]).unwrap();
    assert_eq!(set.overlap_with(&other), Some((claim("a"), claim("a/x"))));
    assert_eq!(set.overlap_with(&ClaimSet::parse(["c"]).unwrap()), None);
    assert!(ClaimSet::whole().is_whole() && !set.is_whole());
    assert!(ClaimSet::whole().covers("x") && !ClaimSet::default().covers("x"));
}

#[test]
fn stars_cost_no_exponential_time() {
    let left = claim(&"**/a*a*a*a*b/".repeat(12));
    let right = claim(&"**/*a*a*a*a/".repeat(12));
    assert!(left.overlaps(&right));
    let path = "aaaaaaaaaaaaaaaaaaaaaaaa/".repeat(40);
    assert!(!claim("**/a*a*a*a*a*b.rs").covers(&path));
}

/// A small alphabet, so that claims meet often.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", "A", "a.rs", "b.rs", "[ab]", "x-y"])
        .prop_map(str::to_owned)
}

fn any_path() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..5).prop_map(|names| names.join("/"))
}

fn any_claim() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        4 => name(),
        1 => Just("**".to_owned()),
        3 => prop::sample::select(vec![
            "*", "*.rs", "a*", "*b", "?", "??", "[a-b]", "[!a]", "{a,b}", "{a,b}.rs", "{a/b,b}", "*.{rs,md}", "?*",
            "a*s", "*a*",
        ])
        .prop_map(str::to_owned),
    ];
    (prop::collection::vec(segment, 1..5), any::<bool>()).prop_map(|(segments, folder)| {
        let slash = if folder { "/" } else { "" };
        format!("{}{slash}", segments.join("/"))
    })
}

/// globset's opinion on whether a file or one of its folders is matched.
fn globset_covers(text: &str, path: &str) -> bool {
    let matcher = globset::GlobBuilder::new(text.trim_end_matches('/'))
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .unwrap()
        .compile_matcher();
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    folders.chain([path]).any(|part| matcher.is_match(part))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn p5_overlap_is_symmetric_and_reflexive(left in any_claim(), right in any_claim()) {
        let (left, right) = (claim(&left), claim(&right));
        prop_assert!(left.overlaps(&left));
        prop_assert_eq!(left.overlaps(&right), right.overlaps(&left));
    }

    #[test]
    fn p5_two_claims_that_cover_one_path_overlap(left in any_claim(), right in any_claim(), path in any_path()) {
        let (left, right) = (claim(&left), claim(&right));
        if left.covers(&path) && right.covers(&path) {
            prop_assert!(left.overlaps(&right), "{left} {right} {path}");
        }
        if left.covers(&path) && !path.contains('[') {
            prop_assert!(left.overlaps(&claim(&path)), "{left} {path}");
        }
    }

    #[test]
    fn what_globset_matches_is_covered(text in any_claim(), path in any_path()) {
        let own = claim(&text);
        let file_glob = own.as_str().ends_with("rs") || own.as_str().ends_with('}') || own.as_str().ends_with('s');
        let theirs = globset_covers(&text, &path);
        // Ours is wider where a claim names a folder by `**` and where `[ab]` stands for itself, and
        // narrower where `*.rs` means files only.
        if theirs && !file_glob {
            prop_assert!(own.covers(&path), "{text} {path}");
        }
        if own.covers(&path) && !text.contains('[') && !text.contains("**") {
            prop_assert!(theirs, "{text} {path}");
        }
    }

    #[test]
    fn any_text_is_refused_or_canonical(text in "[ab./*?{},!\\[\\]\\\\-]{0,12}") {
        if let Ok(claim) = ClaimPath::parse(&text) {
            let again = ClaimPath::parse(claim.as_str()).unwrap();
            prop_assert_eq!(again.as_str(), claim.as_str());
            prop_assert!(claim.overlaps(&claim), "{}", claim);
        }
    }
}

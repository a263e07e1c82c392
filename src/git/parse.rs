//! One parser per git command, pure.

use std::path::PathBuf;

/// The oldest git with `worktree list -z`.
pub(super) const VERSION_LEAST: &str = "2.36";

/// Whether `git version`'s answer is new enough; `None` when it cannot be read.
pub(super) fn version_is_enough(answer: &str) -> Option<bool> {
    let number = |text: &str| text.parse::<u32>().ok();
    let mut found = answer.split_whitespace().nth(2)?.split('.');
    let mut least = VERSION_LEAST.split('.');
    let found = (number(found.next()?)?, number(found.next()?)?);
    Some(found >= (number(least.next()?)?, number(least.next()?)?))
}

/// One entry of `git worktree list --porcelain -z`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ListedWorktree {
    pub(super) path: PathBuf,
    /// Without `refs/heads/`; none when HEAD is detached.
    pub(super) branch: Option<String>,
    pub(super) head: Option<String>,
}

pub(super) fn worktree_list(bytes: &[u8]) -> Vec<ListedWorktree> {
    let mut list: Vec<ListedWorktree> = Vec::new();
    for line in bytes.split(|b| *b == 0) {
        let (key, value) = match line.iter().position(|b| *b == b' ') {
            Some(at) => (line.get(..at), line.get(at + 1..)),
            None => (Some(line), None),
        };
        let value = value.unwrap_or_default();
        let text = || String::from_utf8_lossy(value).into_owned();
        match (key, list.last_mut()) {
            (Some(b"worktree"), _) => list.push(ListedWorktree {
                path: path_from(value),
                ..ListedWorktree::default()
            }),
            (Some(b"HEAD"), Some(entry)) => entry.head = Some(text()),
            (Some(b"branch"), Some(entry)) => {
                let name = text();
                entry.branch = Some(name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned());
            }
            _ => {}
        }
    }
    list
}

/// A path from git's bytes; names need not be UTF-8.
pub(super) fn path_from(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// What differs between two trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TreeDiff {
    /// Paths, sorted as git sorts.
    pub(super) files: Vec<String>,
    /// Those that are now a commit of another repository: its files are not in this one.
    pub(super) nested: Vec<String>,
}

/// Reads `git diff-tree -r -z --raw`: `:mode mode oid oid status NUL path NUL`.
pub(super) fn raw_diff(bytes: &[u8]) -> Option<TreeDiff> {
    let mut diff = TreeDiff::default();
    let mut fields = bytes.split(|b| *b == 0);
    while let Some(header) = fields.next().filter(|header| !header.is_empty()) {
        let header = std::str::from_utf8(header).ok()?.strip_prefix(':')?;
        let new_mode = header.split(' ').nth(1)?;
        let path = String::from_utf8_lossy(fields.next()?).into_owned();
        if new_mode == "160000" {
            diff.nested.push(path.clone());
        }
        diff.files.push(path);
    }
    Some(diff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (answer, enough) in [
            ("git version 2.47.3", Some(true)),
            ("git version 2.36.0", Some(true)),
            ("git version 2.9.5", Some(false)),
            ("git version 3.0 (Apple Git-1)", Some(true)),
            ("nonsense", None),
        ] {
            assert_eq!(version_is_enough(answer), enough, "{answer}");
        }
    }

    #[test]
    fn worktrees_are_listed_with_odd_names() {
        let bytes = b"worktree /a b/\xc3\xbc\nx\0HEAD 12\0branch refs/heads/flockd/T.1\0\0\
            worktree /c\0HEAD 34\0detached\0prunable gone\0\0worktree /d\0bare\0\0";
        let list = worktree_list(bytes);
        assert_eq!(list.len(), 3);
        assert_eq!(list[0].path, PathBuf::from("/a b/ü\nx"));
        assert_eq!(list[0].branch.as_deref(), Some("flockd/T.1"));
        assert_eq!(
            (&list[1].branch, list[1].head.as_deref()),
            (&None, Some("34"))
        );
        assert_eq!(list[2].head, None);
    }

    #[test]
    fn raw_diffs_name_files_and_nested_repositories() {
        let bytes = b":100644 100644 a b M\0with space\0:000000 160000 0 c A\0nested\0";
        let diff = raw_diff(bytes).unwrap();
        assert_eq!(diff.files, ["with space", "nested"]);
        assert_eq!(diff.nested, ["nested"]);
        assert_eq!(raw_diff(b"").unwrap(), TreeDiff::default());
        assert_eq!(raw_diff(b"nonsense\0x\0"), None);
    }
}

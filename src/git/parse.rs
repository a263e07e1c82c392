//! Pure parsers of what git prints, one per command.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One entry of `git worktree list --porcelain -z`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Entry {
    /// Where it is, or was.
    pub(super) path: PathBuf,
    /// The commit checked out; empty for a bare repository.
    pub(super) head: String,
    /// The branch without `refs/heads/`; none: detached.
    pub(super) branch: Option<String>,
}

/// One change of `git diff-tree -r --raw -z`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// The path, as git has it.
    pub(super) path: Vec<u8>,
    /// It is now a link to a commit of another repository, and was none before.
    pub(super) new_link: bool,
}

/// `git version`: major, minor and the text after `git version `.
pub(super) fn version(stdout: &[u8]) -> Option<((u32, u32), String)> {
    let text = std::str::from_utf8(stdout).ok()?.trim();
    let full = text.strip_prefix("git version ")?;
    let mut numbers = full.split(|c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    Some(((major, minor), full.to_owned()))
}

/// One path, up to git's line end; the path itself may have line ends.
pub(super) fn path_line(stdout: &[u8]) -> Option<PathBuf> {
    let bytes = stdout.strip_suffix(b"\n").unwrap_or(stdout);
    (!bytes.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(bytes)))
}

/// A full object id (SHA-1 or SHA-256) on a line of its own.
pub(super) fn object_id(stdout: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(stdout).ok()?.trim();
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| text.to_owned())
}

/// Lines that are names of refs.
pub(super) fn lines(stdout: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stdout);
    text.lines().map(str::to_owned).collect()
}

/// `git worktree list --porcelain -z`: attributes end with NUL, entries with an empty one.
pub(super) fn worktree_list(stdout: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut current: Option<Entry> = None;
    for field in stdout.split(|&b| b == 0) {
        let space = field.iter().position(|&b| b == b' ').unwrap_or(field.len());
        let (key, value) = field.split_at(space);
        let value = value.get(1..).unwrap_or_default();
        match (key, current.as_mut()) {
            (b"", _) => entries.extend(current.take()),
            (b"worktree", None) => {
                current = Some(Entry {
                    path: PathBuf::from(OsStr::from_bytes(value)),
                    ..Entry::default()
                });
            }
            (_, None) | (b"worktree", Some(_)) => return None,
            (b"HEAD", Some(entry)) => entry.head = String::from_utf8_lossy(value).into_owned(),
            (b"branch", Some(entry)) => {
                let name = String::from_utf8_lossy(value);
                let short = name.strip_prefix("refs/heads/").unwrap_or(&name);
                entry.branch = Some(short.to_owned());
            }
            // bare, detached, locked, prunable and what a later git adds.
            _ => {}
        }
    }
    entries.extend(current);
    Some(entries)
}

/// `git diff-tree -r --raw -z --no-renames`: `:mode mode id id status NUL path NUL`.
pub(super) fn raw_changes(stdout: &[u8]) -> Option<Vec<Change>> {
    const LINK: &[u8] = b"160000";
    let mut fields = stdout.split(|&b| b == 0);
    let mut changes = Vec::new();
    while let Some(head) = fields.next().filter(|head| !head.is_empty()) {
        let mut words = head.strip_prefix(b":")?.split(|&b| b == b' ');
        let (old, new) = (words.next()?, words.next()?);
        changes.push(Change {
            path: fields.next().filter(|path| !path.is_empty())?.to_owned(),
            new_link: new == LINK && old != LINK,
        });
    }
    Some(changes)
}

/// The lock file of `Unable to create 'FILE': File exists.`
pub(super) fn lock_in_the_way(stderr: &str) -> Option<PathBuf> {
    let (_, rest) = stderr.split_once("Unable to create '")?;
    let (file, _) = rest.split_once("': File exists")?;
    Some(PathBuf::from(file))
}

/// Whether `name` is `base` or `base-N`: flockd's own name or one it fell back to; the number is 0 for `base`.
pub(super) fn own_number(name: &str, base: &str) -> Option<u32> {
    match name.strip_prefix(base)? {
        "" => Some(0),
        rest => rest.strip_prefix('-')?.parse().ok().filter(|&n| n > 0),
    }
}

/// A path for people and JSON.
pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_all_builders_are_read() {
        let of = |text: &str| version(text.as_bytes()).map(|(numbers, _)| numbers);
        assert_eq!(of("git version 2.47.3\n"), Some((2, 47)));
        assert_eq!(of("git version 2.39.5 (Apple Git-154)\n"), Some((2, 39)));
        assert_eq!(of("git version 2.36.0-rc1\n"), Some((2, 36)));
        assert_eq!(of("hub version 2.1\n"), None);
        assert_eq!(of("git version x\n"), None);
    }

    #[test]
    fn paths_keep_spaces_and_line_ends() {
        assert_eq!(path_line(b"/a b/ \n"), Some("/a b/ ".into()));
        assert_eq!(path_line(b"/a\nb\n"), Some("/a\nb".into()));
        assert_eq!(path_line(b"\n"), None);
    }

    #[test]
    fn object_ids_are_whole() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(object_id(format!("{id}\n").as_bytes()).as_deref(), Some(id));
        assert_eq!(object_id(b"0123456\n"), None);
        assert_eq!(object_id(b"HEAD\n"), None);
    }

    #[test]
    fn worktree_lists_are_read_with_any_path() {
        let text = "worktree /r\0HEAD aa\0branch refs/heads/main\0\0worktree /r w\nx\0HEAD bb\0detached\0\
                    locked because\0\0worktree /bare\0bare\0\0";
        let list = worktree_list(text.as_bytes()).unwrap();
        assert_eq!(list.len(), 3);
        assert_eq!(list[0].branch.as_deref(), Some("main"));
        assert_eq!(list[1].path, Path::new("/r w\nx"));
        assert_eq!((list[1].head.as_str(), &list[1].branch), ("bb", &None));
        assert_eq!(list[2].head, "");
        assert_eq!(worktree_list(b"HEAD aa\0\0"), None);
        assert_eq!(worktree_list(b"").unwrap(), []);
    }

    #[test]
    fn raw_changes_name_paths_and_new_links() {
        let text = b":100644 100644 aa bb M\0a b.txt\0:000000 160000 00 cc A\0sub\0:160000 160000 cc dd M\0old\0";
        let changes = raw_changes(text).unwrap();
        let seen: Vec<_> = changes.iter().map(|c| (&c.path[..], c.new_link)).collect();
        assert_eq!(
            seen,
            [(&b"a b.txt"[..], false), (b"sub", true), (b"old", false)]
        );
        assert_eq!(raw_changes(b"").unwrap(), []);
        assert_eq!(raw_changes(b"nonsense\0"), None);
        assert_eq!(raw_changes(b":100644 100644 aa bb M\0"), None);
    }

    #[test]
    fn what_is_in_the_way_is_found_in_gits_words() {
        let lock = "fatal: Unable to create '/r/.git/it's/index.lock': File exists.\n\nAnother git";
        assert_eq!(
            lock_in_the_way(lock),
            Some("/r/.git/it's/index.lock".into())
        );
        assert_eq!(
            lock_in_the_way("fatal: Unable to create 'x': Permission denied"),
            None
        );
    }

    #[test]
    fn own_names_are_told_from_other_tasks() {
        assert_eq!(own_number("T.1", "T.1"), Some(0));
        assert_eq!(own_number("T.1-12", "T.1"), Some(12));
        for other in ["T.1-0", "T.11", "T.1-1.2", "T.1.kept-1", "T.1-", "U.1"] {
            assert_eq!(own_number(other, "T.1"), None, "{other}");
        }
    }
}

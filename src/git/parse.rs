//! Parsers of git's machine-readable output. Pure.

/// One entry of `worktree list --porcelain -z`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ListedWorktree {
    pub(super) path: String,
    /// `refs/heads/…`, none when detached.
    pub(super) branch: Option<String>,
    /// git would prune it: its folder is gone.
    pub(super) prunable: bool,
}

pub(super) fn worktrees(output: &[u8]) -> Vec<ListedWorktree> {
    let mut found: Vec<ListedWorktree> = Vec::new();
    for field in fields(output) {
        if let Some(path) = field.strip_prefix("worktree ") {
            found.push(ListedWorktree {
                path: path.to_owned(),
                ..ListedWorktree::default()
            });
        } else if let Some(last) = found.last_mut() {
            if let Some(branch) = field.strip_prefix("branch ") {
                last.branch = Some(branch.to_owned());
            } else if field.starts_with("prunable") {
                last.prunable = true;
            }
        }
    }
    found
}

/// NUL-separated texts without the empty ones.
pub(super) fn fields(output: &[u8]) -> Vec<String> {
    output
        .split(|b| *b == 0)
        .filter(|f| !f.is_empty())
        .map(|f| String::from_utf8_lossy(f).into_owned())
        .collect()
}

/// `git version 2.47.3` as numbers.
pub(super) fn version(text: &str) -> Option<(u32, u32)> {
    let numbers = text.trim().strip_prefix("git version ")?;
    let mut parts = numbers.split('.').map(|p| p.parse::<u32>().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worktree_lists_are_read() {
        let output = b"worktree /r\0HEAD a\0branch refs/heads/main\0\0worktree /w x\0HEAD b\0detached\0prunable gone\0\0";
        assert_eq!(
            worktrees(output),
            [
                ListedWorktree {
                    path: "/r".into(),
                    branch: Some("refs/heads/main".into()),
                    prunable: false
                },
                ListedWorktree {
                    path: "/w x".into(),
                    branch: None,
                    prunable: true
                },
            ]
        );
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(version("git version 2.47.3\n"), Some((2, 47)));
        assert_eq!(version("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(version("fatal"), None);
    }
}

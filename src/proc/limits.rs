//! Limits of this process. Knows nothing of what needs them.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one; answers the limit now in force.
///
/// Not guaranteed: that it is enough. The caller computes its need and says so loudly.
pub fn raise_fd_limit() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return 0;
    };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
        return hard;
    }
    soft
}

/// Closes every descriptor above 2 that the parent left open, so that no child inherits it.
///
/// Only for a process that has opened nothing itself yet.
pub fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let inherited: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
        })
        .filter(|fd| *fd > 2)
        .collect();
    for fd in inherited {
        // The listing's own descriptor is in the list and closed by now: EBADF is expected once.
        let _ = nix::unistd::close(fd);
    }
}

//! The processes below a process, read from `/proc`. A look, not a lock: the answer may be stale at once.

use super::Identity;
use super::identity::{ProcessStat, stat_of};
use std::collections::HashSet;

/// All processes that `/proc` shows. (`/proc/<pid>/task/*/children` is not in every kernel.)
#[must_use]
pub fn all_processes() -> Vec<ProcessStat> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
        })
        .filter_map(stat_of)
        .collect()
}

/// The living processes below `root`, itself and zombies left out, parents before children.
#[must_use]
pub fn descendants(root: u32) -> Vec<Identity> {
    below(root, &all_processes())
        .iter()
        .filter(|stat| !stat.is_dead())
        .map(ProcessStat::identity)
        .collect()
}

/// CPU milliseconds of the processes below `root` and of the children that they waited for.
#[must_use]
pub fn tree_cpu_millis(root: u32) -> u64 {
    let ticks: u64 = below(root, &all_processes())
        .iter()
        .map(|stat| stat.cpu_ticks)
        .sum();
    ticks * 1_000 / ticks_per_second()
}

/// `USER_HZ`: 100 on every architecture Linux is built for today.
fn ticks_per_second() -> u64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .and_then(|ticks| u64::try_from(ticks).ok())
        .filter(|ticks| *ticks > 0)
        .unwrap_or(100)
}

fn below(root: u32, all: &[ProcessStat]) -> Vec<ProcessStat> {
    let mut known: HashSet<u32> = HashSet::from([root]);
    let mut found = Vec::new();
    // Pids are not ordered by descent, so go round until nothing is added; real trees are shallow.
    loop {
        let before = found.len();
        for stat in all {
            if stat.pid != root && known.contains(&stat.parent) && known.insert(stat.pid) {
                found.push(*stat);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Largest resident size so far of one process in KiB (`VmHWM`); 0 when it is gone.
#[must_use]
pub fn peak_rss_kib(pid: u32) -> u64 {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .ok()
        .and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.split_ascii_whitespace().next()?.parse().ok()
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::identity::parse_stat;

    fn stat(pid: u32, parent: u32) -> ProcessStat {
        parse_stat(&format!(
            "{pid} (x) S {parent} 1 1 0 0 0 0 0 0 0 1 0 0 0 20 0 1 0 9 0 0"
        ))
        .unwrap()
    }

    #[test]
    fn descent_does_not_depend_on_the_order_of_pids() {
        let all = [stat(5, 9), stat(9, 3), stat(3, 1), stat(7, 1), stat(4, 5)];
        let mut pids: Vec<u32> = below(3, &all).iter().map(|s| s.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [4, 5, 9]);
        assert!(below(7, &all).is_empty());
    }
}

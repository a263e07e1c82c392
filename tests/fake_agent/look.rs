//! What the agent sees of its own process: environment, descriptors, signal masks, ids.

use crate::{Failure, output};
use nix::unistd::{getpgrp, getpid, getppid, getsid};

/// `NAME=value` lines, sorted; of the given names only when there are any.
pub(crate) fn env(names: &[String]) -> Result<(), Failure> {
    let mut lines: Vec<String> = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| names.is_empty() || names.contains(name))
        .map(|(name, value)| format!("{name}={}", value.to_string_lossy()))
        .collect();
    lines.sort();
    Ok(output::line(&lines.join("\n"))?)
}

/// `fds: 0 1 2`: every open descriptor.
pub(crate) fn descriptors() -> Result<(), Failure> {
    let entries: Vec<_> = std::fs::read_dir("/proc/self/fd")?.collect::<Result<_, _>>()?;
    // The folder's own descriptor is closed by now: its link is gone.
    let mut numbers: Vec<u32> = entries
        .iter()
        .filter(|entry| entry.path().symlink_metadata().is_ok())
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .collect();
    numbers.sort_unstable();
    let list: Vec<String> = numbers.iter().map(u32::to_string).collect();
    Ok(output::line(&format!("fds: {}", list.join(" ")))?)
}

/// `SigBlk: 0…` and `SigIgn: 0…`. SIGPIPE is left out: this program's own runtime ignores it.
pub(crate) fn signal_masks() -> Result<(), Failure> {
    let sigpipe = 1u64 << 12; // Signal 13 is bit 12.
    for line in std::fs::read_to_string("/proc/self/status")?.lines() {
        if let Some((name @ ("SigBlk" | "SigIgn"), mask)) = line.split_once(':') {
            let mask = u64::from_str_radix(mask.trim(), 16)? & !sigpipe;
            output::line(&format!("{name}: {mask:016x}"))?;
        }
    }
    Ok(())
}

/// `pid=… ppid=… pgrp=… sid=…`.
pub(crate) fn process_ids() -> Result<(), Failure> {
    let text = format!(
        "pid={} ppid={} pgrp={} sid={}",
        getpid(),
        getppid(),
        getpgrp(),
        getsid(None)?
    );
    Ok(output::line(&text)?)
}

//! Which processes of a state directory are alive, seen from outside: `/proc`, never flockd's own word.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// The processes of each run that carries this state directory: its token, and their ids.
pub(crate) fn alive(state: &Path) -> BTreeMap<String, BTreeSet<i32>> {
    let mut found: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
    for pid in pids() {
        let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) else {
            continue;
        };
        let value = |name: &[u8]| {
            let mut entries = environ.split(|byte| *byte == 0);
            entries.find_map(|entry| entry.strip_prefix(name))
        };
        if value(b"FLOCKD_STATE_DIR=") != Some(state.as_os_str().as_bytes()) {
            continue;
        }
        if let Some(token) = value(b"FLOCKD_TOKEN=") {
            let token = String::from_utf8_lossy(token).into_owned();
            found.entry(token).or_default().insert(pid);
        }
    }
    found
}

/// The runners of a state directory.
pub(crate) fn runners(state: &Path) -> BTreeSet<i32> {
    let runs_for_it = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.get(1) == Some(&b"runner".as_slice()) && words.contains(&state.as_os_str().as_bytes())
    };
    pids().filter(runs_for_it).collect()
}

/// Ends a process as nothing can prevent.
pub(crate) fn kill_9(pid: i32) {
    signal(pid, nix::sys::signal::Signal::SIGKILL);
}

/// Sends a signal; a process that has just ended is no fault.
pub(crate) fn signal(pid: i32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).ok();
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Looks all the time how many runs of a state directory are alive, and keeps the largest number.
pub(crate) struct Observer {
    peak: Arc<AtomicUsize>,
    looks: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    /// Starts to look.
    pub(crate) fn of(state: &Path) -> Self {
        let (peak, looks, over) =
            <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicBool>)>::default();
        let (state, seen, count, end) = (
            state.to_owned(),
            Arc::clone(&peak),
            Arc::clone(&looks),
            Arc::clone(&over),
        );
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::SeqCst) {
                seen.fetch_max(alive(&state).len(), Ordering::SeqCst);
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self {
            peak,
            looks,
            over,
            thread: Some(thread),
        }
    }

    /// The largest number of runs alive at once so far.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }

    /// How often it has looked.
    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

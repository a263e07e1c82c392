//! The checks of `doctor`, one function each. A repair here loses nothing: it removes what a dead process
//! left and what the next loop would remove too.

use super::context::Context;
use super::doctor::{Health, Report};
use super::progress::Progress;
use crate::budget::SlotText;
use crate::client::{Client, ClientError};
use crate::config::{Config, scan_tasks};
use crate::fsx;
use crate::fsx::lock::Lock;
use crate::lease::{LeaseManager, read_leases};
use crate::proc::command::{CommandSpec, run};
use crate::proc::{carriers, sweep_token};
use crate::types::TaskId;
use std::path::{Path, PathBuf};

/// Worktrees with safe concurrent creation and `--porcelain -z` lists.
const GIT_MIN: (u32, u32) = (2, 36);
/// Less free space than this stops a day's work.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// Files that the daemon keeps open besides its runs'.
const FILES_BASE: u64 = 128;
/// Files that the daemon keeps open for each run.
const FILES_PER_RUN: u64 = 8;
/// What one agent takes, roughly (spec: 0.7 GB for some).
const KIB_PER_RUN: u64 = 1 << 20;

pub(super) fn git(report: &mut Report, root: &Path) {
    let mut spec = CommandSpec::new("git");
    spec.args = vec!["--version".into()];
    match run(&spec) {
        Ok(output) if output.success() => {
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            match git_version(&text) {
                Some(version) if version < GIT_MIN => {
                    let (major, minor) = GIT_MIN;
                    report.problem("git", format!("{text}: {major}.{minor} or newer is needed"));
                }
                _ => report.ok("git", text),
            }
        }
        Ok(_) => report.problem("git", "`git --version` fails"),
        Err(error) => report.problem("git", format!("git cannot be run: {error}")),
    }
    if root.join(".git").exists() {
        report.ok("project", root.display().to_string());
    } else {
        report.problem(
            "project",
            format!("{} is not a git repository", root.display()),
        );
    }
}

fn git_version(text: &str) -> Option<(u32, u32)> {
    let number = text.split_whitespace().nth(2)?;
    let mut parts = number.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

pub(super) fn configuration(report: &mut Report, context: &Context) -> Option<Config> {
    match context.try_load() {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                report.warning("config", warning.to_string());
            }
            match loaded.config.cannot_start() {
                Some(reason) => report.problem("config", reason),
                None => report.ok("config", "valid"),
            }
            Some(loaded.config)
        }
        Err(error) => {
            report.problem("config", error.to_string());
            None
        }
    }
}

pub(super) fn state_dir(report: &mut Report, state_dir: &Path) {
    if !state_dir.is_dir() {
        report.ok("state", format!("{} is not there yet", state_dir.display()));
        return;
    }
    match fsx::check_lockable(state_dir) {
        Ok(()) => report.ok(
            "state",
            format!("{}: locks are honest", state_dir.display()),
        ),
        Err(error) => report.problem("state", error.to_string()),
    }
    match fsx::free_bytes(state_dir) {
        Ok(free) if free < FREE_BYTES_MIN => {
            report.warning("disk", format!("only {} MiB are free", free >> 20));
        }
        Ok(free) => report.ok("disk", format!("{} GiB are free", free >> 30)),
        Err(error) => report.warning("disk", error.to_string()),
    }
}

pub(super) fn daemon(report: &mut Report, state_dir: &Path, fix: bool) {
    match Client::connect(state_dir) {
        Ok(_) => report.ok("daemon", "running, answers"),
        Err(ClientError::NoDaemon) => {
            let address = state_dir.join("socket");
            if !address.exists() {
                report.ok("daemon", "not running");
            } else if !is_free(&state_dir.join("lock")) {
                report.problem(
                    "daemon",
                    "one holds the lock and does not listen: it is starting, or stuck",
                );
            } else if fix {
                match fsx::remove(&address) {
                    Ok(()) => report.add(
                        "daemon",
                        Health::Fixed,
                        "removed the address of a dead daemon",
                    ),
                    Err(error) => report.problem("daemon", error.to_string()),
                }
            } else {
                report.warning(
                    "daemon",
                    "not running; its address is left over: `flockd doctor --fix`",
                );
            }
        }
        Err(error) => report.problem("daemon", error.to_string()),
    }
}

/// Whether no living process holds a lock file.
fn is_free(path: &Path) -> bool {
    !path.exists() || matches!(Lock::try_exclusive(path), Ok(Some(_)))
}

pub(super) fn markers(report: &mut Report, state_dir: &Path) {
    for (name, undo) in [
        ("ESTOP", "`flockd thaw`"),
        ("PAUSED", "`flockd resume`"),
        ("PARALLELISM_KILL", "remove the file"),
    ] {
        let marker = state_dir.join(name);
        if marker.exists() {
            report.warning(
                "marker",
                format!("{} holds the loop; to undo: {undo}", marker.display()),
            );
        }
    }
}

pub(super) fn agents(report: &mut Report, config: &Config) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for (name, agent) in &config.agents {
        let Some(program) = agent.command.first() else {
            continue;
        };
        let is_path = program.contains('/');
        let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
        if is_path || found {
            report.ok("agent", format!("{name}: {program}"));
        } else {
            report.problem(
                "agent",
                format!(
                    "{name}: {program} is not on PATH: install it or change agents.{name}.command"
                ),
            );
        }
    }
}

pub(super) fn tasks(report: &mut Report, context: &Context, config: &Config) {
    let folder = context.shown(&config.task_dir);
    let found = match scan_tasks(&config.task_dir) {
        Ok(found) => found,
        Err(error) => {
            report.problem(
                "tasks",
                format!("cannot list {}: {error}", folder.display()),
            );
            return;
        }
    };
    report.ok(
        "tasks",
        format!("{} in {}", found.tasks.len(), folder.display()),
    );
    for error in &found.malformed {
        let mut error = error.clone();
        error.file = context.shown(&error.file).to_owned();
        report.problem("tasks", error.to_string());
    }
    for error in found.misfits(config, folder) {
        report.problem("tasks", error.to_string());
    }
    for (task, other) in &found.unknown_after {
        report.warning(
            "tasks",
            format!("{task} comes after {other}, which has no task file"),
        );
    }
    for cycle in &found.cycles {
        let ids: Vec<&str> = cycle.iter().map(|id| id.as_str()).collect();
        report.problem(
            "tasks",
            format!("these wait for each other for ever: {}", ids.join(", ")),
        );
    }
}

pub(super) fn machine(report: &mut Report, config: &Config) {
    let ceiling = u64::from(config.loop_.global_concurrency);
    let needed = FILES_BASE + FILES_PER_RUN * ceiling;
    match open_files_limit() {
        Some(limit) if limit < needed => {
            let m = config.loop_.global_concurrency;
            report.problem("files", format!("{limit} open files are allowed, a ceiling of {m} needs {needed}: raise `ulimit -Hn`"));
        }
        Some(limit) => report.ok(
            "files",
            format!("{limit} open files are allowed, {needed} needed"),
        ),
        None => report.warning("files", "the limit of open files cannot be read"),
    }
    let wanted = ceiling * KIB_PER_RUN;
    match available_kib() {
        Some(available) if available < wanted => {
            let (have, want) = (available >> 20, wanted >> 20);
            report.warning("memory", format!("{have} GiB are available; {ceiling} agents may want {want} GiB: lower loop.global_concurrency"));
        }
        Some(available) => report.ok("memory", format!("{} GiB are available", available >> 20)),
        None => {}
    }
}

/// The hard limit: the daemon raises its soft one to it.
fn open_files_limit() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("Max open files"))?;
    match line.split_whitespace().nth(4)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn available_kib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

pub(super) fn ledger(report: &mut Report, state_dir: &Path) {
    if !state_dir.join("ledger").is_dir() {
        return;
    }
    match crate::ledger::verify(state_dir) {
        Ok(found) => report.ok("ledger", format!("{} facts, all intact", found.facts)),
        Err(error) => report.problem("ledger", error.to_string()),
    }
}

/// Worktrees of tasks that are not in flight. Never removed here: a person may want what is in them.
pub(super) fn worktrees(report: &mut Report, config: &Config) {
    let view = super::offline::read_view(&config.state_dir);
    let progress = Progress::read(&config.state_dir, view.as_ref());
    let Ok(entries) = std::fs::read_dir(&config.loop_.worktree_dir) else {
        return;
    };
    let left: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            let task = name
                .rsplit_once('.')
                .map_or(name.as_str(), |(task, _)| task);
            !TaskId::new(task).is_ok_and(|task| progress.is_in_flight(&task))
        })
        .collect();
    if !left.is_empty() {
        let (count, folder) = (left.len(), config.loop_.worktree_dir.display());
        report.warning(
            "worktrees",
            format!("{count} kept in {folder}: look, then `git worktree remove`"),
        );
    }
}

/// Leases that nobody holds any more. The next claim removes them too; nothing waits for them.
pub(super) fn leases(report: &mut Report, state_dir: &Path, fix: bool) {
    if let Some(problem) = read_leases(state_dir).problem {
        report.problem("leases", problem);
        return;
    }
    let dead = super::lease::leases(state_dir)
        .iter()
        .filter(|lease| !lease.alive)
        .count();
    if dead == 0 {
        report.ok("leases", "none is stale");
    } else if fix {
        match LeaseManager::open(state_dir).and_then(|manager| manager.reclaim_dead()) {
            Ok(gone) => {
                if let Err(error) = crate::runner::sweep_dead_slots(state_dir) {
                    report.problem("slots", error.to_string());
                }
                let text = format!("removed {} leases of dead holders", gone.len());
                report.add("leases", Health::Fixed, text);
            }
            Err(error) => report.problem("leases", error.to_string()),
        }
    } else {
        report.warning(
            "leases",
            format!("{dead} of dead holders: they stop nobody; `flockd doctor --fix` removes them"),
        );
    }
}

/// Slots whose text names a run although nobody holds them: what may be left of that run is found by its
/// token. Whoever takes the slot next sweeps too; this does it now.
pub(super) fn orphans(report: &mut Report, state_dir: &Path, fix: bool) {
    let mut left = 0;
    let mut ended = 0;
    for slot in abandoned_slots(state_dir) {
        let processes = carriers(&slot.token).len();
        if processes == 0 {
            continue;
        }
        left += processes;
        if fix {
            // What is left is counted again, which tells more than the report.
            let _ = sweep_token(&slot.token);
            ended += processes.saturating_sub(carriers(&slot.token).len());
        }
    }
    if left == 0 {
        report.ok("orphans", "none");
    } else if ended == left {
        report.add(
            "orphans",
            Health::Fixed,
            format!("ended {ended} processes of dead runs"),
        );
    } else {
        let rest = left - ended;
        report.problem(
            "orphans",
            format!("{rest} processes of dead runs are alive: `flockd doctor --fix` ends them"),
        );
    }
}

fn abandoned_slots(state_dir: &Path) -> Vec<SlotText> {
    let Ok(entries) = std::fs::read_dir(state_dir.join("slots")) else {
        return Vec::new();
    };
    let is_slot = |path: &PathBuf| {
        let stem = path
            .file_stem()
            .and_then(|s| s.to_str())
            .unwrap_or_default();
        path.extension().is_some_and(|e| e == "lock") && stem.chars().all(|c| c.is_ascii_digit())
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_slot)
        .filter_map(|path| {
            let text = SlotText::parse(&std::fs::read_to_string(&path).ok()?)?;
            is_free(&path).then_some(text)
        })
        .collect()
}

//! `status`, `why`, `list`, `show`: from the daemon when one runs, else from the files.

use super::context::Context;
use super::failure::{Failure, Outcome};
use super::offline::Snapshot;
use super::output::{self, elapsed, printable, table};
use super::runs::{self, RunRecord};
use crate::api::{
    LoopReport, Reply, Request, RunReport, StatusReport, TaskRow, TaskStatus, WaitReport, WhyReport,
};
use crate::config::{Config, read_task};
use crate::fsx::{Watch, WatchMask};
use crate::proc::wait_readable;
use crate::types::TaskId;
use clap::Args;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct TaskArgs {
    /// The task's id
    pub(super) task: TaskId,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only tasks in this state (queued, running, waiting, blocked, completed, deferred, ...)
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Show it again whenever something changes, until interrupted
    #[arg(long)]
    watch: bool,
}

/// How often `status --watch` looks again when nothing changes: running times grow.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Prints the whole picture, once or until interrupted.
pub(super) fn status(context: &Context, args: &StatusArgs) -> Outcome {
    if !args.watch {
        return status_once(context);
    }
    let state_dir = context.state_dir();
    let mut watch = Watch::new()?;
    watch.add(&state_dir, WatchMask::ENTRIES)?;
    let clear = std::io::stdout().is_terminal() && !context.json;
    loop {
        if clear {
            // Home and clear to the end: the picture stays in place, and scrolling back still works.
            let mut out = output::stdout();
            out.write_all(b"\x1b[H\x1b[J")?;
            out.flush()?;
        }
        status_once(context)?;
        wait_readable(&[watch.as_fd()], Some(WATCH_EVERY))?;
        watch.read()?;
    }
}

fn status_once(context: &Context) -> Outcome {
    let config = context.config()?;
    let report = match ask(context, &config, &Request::Status)? {
        Some(Reply::Status(report)) => *report,
        _ => super::offline_status::status(&config)?,
    };
    if context.json {
        output::json(&report)?;
        return Ok(0);
    }
    let mut out = output::stdout();
    print_status(&mut out, &report)?;
    out.flush()?;
    Ok(0)
}

/// The daemon's answer; none when no daemon runs or it went away: the files answer then.
pub(super) fn ask(
    context: &Context,
    config: &Config,
    request: &Request,
) -> Result<Option<Reply>, Failure> {
    use crate::client::{ClientError, LOOK_TIMEOUT};
    let Some(mut client) = context.daemon(&config.state_dir) else {
        return Ok(None);
    };
    let answer = client
        .answer_within(LOOK_TIMEOUT)
        .and_then(|()| client.request(request));
    match answer {
        Ok(reply) => Ok(Some(reply)),
        Err(error @ ClientError::Refused { .. }) => Err(error.into()),
        Err(error) => {
            output::say(format!("{error}; showing what the files say"));
            Ok(None)
        }
    }
}

fn print_status(out: &mut impl Write, report: &StatusReport) -> std::io::Result<()> {
    let daemon = &report.daemon;
    match (daemon.running, daemon.pid) {
        (true, Some(pid)) => writeln!(out, "daemon   running, pid {pid}")?,
        (true, None) => writeln!(out, "daemon   running")?,
        (false, _) => writeln!(out, "daemon   not running")?,
    }
    print_loop(out, &report.loop_)?;
    writeln!(
        out,
        "slots    {} of {} used",
        report.slots.used, report.slots.total
    )?;
    let t = &report.tasks;
    writeln!(
        out,
        "tasks    {} queued, {} running, {} waiting, {} blocked, {} completed, {} deferred",
        t.queued, t.running, t.waiting, t.blocked, t.completed, t.deferred
    )?;
    if t.malformed > 0 {
        writeln!(
            out,
            "         {} malformed task files: `flockd doctor`",
            t.malformed
        )?;
    }
    if !report.runs.is_empty() {
        writeln!(out)?;
        let rows: Vec<Vec<String>> = report.runs.iter().map(run_cells).collect();
        table(out, &["RUN", "TASK", "ROLE", "STATE", "PID", "FOR"], &rows)?;
    }
    if !report.waiting.is_empty() {
        writeln!(out)?;
        let row = |w: &WaitReport| {
            vec![
                w.task_id.to_string(),
                w.wait_for.to_string(),
                w.detail.clone(),
            ]
        };
        let rows: Vec<Vec<String>> = report.waiting.iter().map(row).collect();
        table(out, &["WAITING", "FOR", "DETAIL"], &rows)?;
    }
    for quota in &report.quota {
        writeln!(
            out,
            "quota    {}: {}",
            printable(&quota.key),
            printable(&quota.detail)
        )?;
    }
    for warning in &report.warnings {
        writeln!(out, "warning  {}", printable(warning))?;
    }
    Ok(())
}

fn print_loop(out: &mut impl Write, report: &LoopReport) -> std::io::Result<()> {
    let held = [
        (report.paused, "paused"),
        (report.estop, "emergency stop"),
        (report.stopping, "stopping"),
        (report.parallelism_kill, "kill switch: serial"),
    ];
    let held: Vec<&str> = held
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, word)| *word)
        .collect();
    match report.decision {
        Some(decision) if held.is_empty() => writeln!(out, "loop     {decision}")?,
        Some(decision) => writeln!(out, "loop     {decision}, {}", held.join(", "))?,
        None if held.is_empty() => {}
        None => writeln!(out, "loop     {}", held.join(", "))?,
    }
    if let Some(s) = report.settings {
        let (x, y, z, m) = (s.tasks, s.workers, s.roles, s.global_concurrency);
        writeln!(
            out,
            "settings {x} tasks, {y} workers, {z} roles, ceiling {m}"
        )?;
    }
    if let Some(reason) = &report.degraded {
        writeln!(out, "DEGRADED {}", printable(reason))?;
    }
    Ok(())
}

fn run_cells(run: &RunReport) -> Vec<String> {
    vec![
        run.run_id.to_string(),
        run.task_id
            .as_ref()
            .map_or_else(|| "-".to_owned(), ToString::to_string),
        run.role.clone(),
        run.state.clone(),
        run.pid
            .map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
        elapsed(run.elapsed_ms),
    ]
}

fn unknown_task(task: &TaskId) -> Failure {
    Failure::invalid(format!("no task {task}: `flockd list` shows all"))
}

/// Prints what a task waits for.
pub(super) fn why(context: &Context, args: &TaskArgs) -> Outcome {
    let config = context.config()?;
    let report = match ask(
        context,
        &config,
        &Request::Why {
            task: args.task.clone(),
        },
    )? {
        Some(Reply::Why(report)) => *report,
        _ => Snapshot::read(&config)?
            .why(&args.task)
            .ok_or_else(|| unknown_task(&args.task))?,
    };
    if report.state == TaskStatus::Unknown {
        return Err(unknown_task(&args.task));
    }
    if context.json {
        output::json(&report)?;
        return Ok(0);
    }
    let mut out = output::stdout();
    print_why(&mut out, &report)?;
    out.flush()?;
    Ok(0)
}

fn print_why(out: &mut impl Write, report: &WhyReport) -> std::io::Result<()> {
    write!(out, "{} is {}", report.task_id, report.state)?;
    if let Some(wait_for) = report.waits_for {
        write!(out, ", waits for {wait_for}")?;
    }
    // The detail may begin with the state's own word.
    let state = report.state.to_string();
    let detail = report
        .detail
        .strip_prefix(state.as_str())
        .unwrap_or(&report.detail);
    match detail.trim_start_matches(": ") {
        "" => writeln!(out)?,
        rest => writeln!(out, ": {}", printable(rest))?,
    }
    for run in &report.runs {
        writeln!(
            out,
            "  run {} ({}) is {}",
            run.run_id,
            printable(&run.role),
            run.state
        )?;
    }
    if report.blockers > 0 {
        writeln!(out, "  blockers so far: {}", report.blockers)?;
    }
    if let Some(advice) = &report.advice {
        writeln!(out, "  {}", printable(advice))?;
    }
    Ok(())
}

/// Prints every task.
pub(super) fn list(context: &Context, args: &ListArgs) -> Outcome {
    let config = context.config()?;
    let mut rows = match ask(context, &config, &Request::List)? {
        Some(Reply::List { tasks }) => tasks,
        _ => Snapshot::read(&config)?.rows(),
    };
    if let Some(state) = &args.state {
        rows.retain(|row| row.state.as_str() == state);
    }
    if context.json {
        output::json(&rows)?;
        return Ok(0);
    }
    let cells = |row: &TaskRow| {
        let waits = row
            .waits_for
            .map(|wait_for| wait_for.to_string())
            .unwrap_or_default();
        let text = if row.title.is_empty() {
            row.detail.clone()
        } else {
            row.title.clone()
        };
        vec![
            row.task_id.clone(),
            row.state.to_string(),
            row.priority.to_string(),
            waits,
            text,
        ]
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let mut out = output::stdout();
    table(
        &mut out,
        &["TASK", "STATE", "PRIORITY", "WAITS FOR", "TITLE"],
        &cells,
    )?;
    out.flush()?;
    Ok(0)
}

/// Prints a task's file, state and runs.
pub(super) fn show(context: &Context, args: &TaskArgs) -> Outcome {
    let config = context.config()?;
    let report = match ask(
        context,
        &config,
        &Request::Why {
            task: args.task.clone(),
        },
    )? {
        Some(Reply::Why(report)) => Some(*report),
        _ => Snapshot::read(&config)?.why(&args.task),
    };
    let report = report
        .filter(|report| report.state != TaskStatus::Unknown)
        .ok_or_else(|| unknown_task(&args.task))?;
    let spec = read_task(&config.task_dir.join(format!("{}.md", args.task))).ok();
    let runs = runs::of_task(&config.state_dir, &args.task);
    if context.json {
        let task = spec.as_ref().map(|spec| {
            serde_json::json!({
                "id": spec.id,
                "title": spec.title,
                "body": spec.body,
                "priority": spec.priority,
                "claims": spec.claims.to_strings(),
                "after": spec.after,
                "stages": spec.stages,
                "agent": spec.agent,
            })
        });
        let runs: Vec<_> = runs.iter().map(RunRecord::to_json).collect();
        output::json(&serde_json::json!({
            "task_id": args.task,
            "state": report.state,
            "waits_for": report.waits_for,
            "detail": report.detail,
            "task": task,
            "runs": runs,
        }))?;
        return Ok(0);
    }
    let mut out = output::stdout();
    print_why(&mut out, &report)?;
    if let Some(spec) = &spec {
        writeln!(out, "title    {}", printable(&spec.title))?;
        writeln!(out, "priority {}", spec.priority)?;
        writeln!(out, "claims   {}", spec.claims.to_strings().join(" "))?;
        if !spec.after.is_empty() {
            let after: Vec<&str> = spec.after.iter().map(TaskId::as_str).collect();
            writeln!(out, "after    {}", after.join(" "))?;
        }
    }
    if !runs.is_empty() {
        writeln!(out)?;
        let rows: Vec<Vec<String>> = runs.iter().map(RunRecord::cells).collect();
        table(
            &mut out,
            &["RUN", "STAGE", "ROLE", "WORKER", "ATTEMPT", "OUTCOME"],
            &rows,
        )?;
    }
    if let Some(spec) = spec.filter(|spec| !spec.body.is_empty()) {
        writeln!(out)?;
        for line in spec.body.lines() {
            writeln!(out, "{}", printable(line))?;
        }
    }
    out.flush()?;
    Ok(0)
}

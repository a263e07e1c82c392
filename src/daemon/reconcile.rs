//! After a restart: every run that the ledger knows as open is found alive, found ended, or swept (P4, W13).
//!
//! ```text
//! a runner has it, alive           → adopted: permits, timeouts and output go on
//! a runner has it, ended           → its report is recorded, the runner may free its slot
//! no runner, exit.json is there    → that is its end
//! no runner, no exit.json          → its processes are ended by token, the run is lost
//! a run of another living process  → left alone (`flockd run`)
//! ```

use super::effector::Effector;
use super::launch::{lost, run_end};
use super::looper::Looper;
use crate::budget::SlotDir;
use crate::engine::Event;
use crate::runner::{Adopted, ExitReport, StopHow, read_exit};
use crate::types::RunId;
use std::collections::{HashMap, HashSet};

/// What the ledger says of an open run.
pub(super) struct OpenRun {
    pub(super) run: RunId,
    pub(super) slots: u32,
    pub(super) token: String,
    pub(super) started: bool,
    pub(super) of_task: bool,
}

/// Brings the core up to date with what really runs.
pub(super) fn reconcile(
    looper: &mut Looper,
    effector: &Effector,
    open: Vec<OpenRun>,
    adopted: Vec<Adopted>,
    slots: &SlotDir,
) {
    let mut found: HashMap<RunId, Adopted> =
        adopted.into_iter().map(|a| (a.run_id.clone(), a)).collect();
    let elsewhere: HashSet<RunId> = slots
        .held()
        .into_iter()
        .map(|(_, text)| text.run_id)
        .collect();
    for run in open {
        looper.tokens.insert(run.run.clone(), run.token.clone());
        match found.remove(&run.run) {
            Some(adopted) => adopt(looper, effector, &run, adopted),
            None if !run.of_task && elsewhere.contains(&run.run) => {}
            None => bury(looper, &run),
        }
    }
    // A run that the ledger does not know was never acknowledged: end it.
    for (run, _) in found {
        tracing::warn!(%run, "a runner has a run that the ledger does not know; it is stopped");
        effector.pool.stop(&run, StopHow::Kill);
        effector.pool.settled(&run);
    }
}

fn adopt(looper: &mut Looper, effector: &Effector, run: &OpenRun, adopted: Adopted) {
    effector.adopt(&run.run, run.slots);
    if !run.started
        && let Some(identity) = adopted.identity
    {
        looper.event(Event::RunStarted {
            run: run.run.clone(),
            pid: identity.pid,
            start_ticks: identity.start_ticks,
            slots: adopted.slots.clone(),
        });
    }
    effector.progress.say(&format!(
        "run {} goes on{}",
        run.run,
        match adopted.identity {
            Some(identity) => format!(" (pid {})", identity.pid),
            None => String::new(),
        }
    ));
    if let Some(report) = adopted.exited {
        ended(looper, &run.run, report);
    }
}

fn ended(looper: &mut Looper, run: &RunId, report: ExitReport) {
    let end = Box::new(run_end(&looper.state_dir, report));
    looper.event(Event::RunExited {
        run: run.clone(),
        end,
    });
}

fn bury(looper: &mut Looper, run: &OpenRun) {
    let report = read_exit(&looper.state_dir, &run.run).ok().flatten();
    // Also after an exit.json: nothing with this token may be left before its slot is used again.
    let swept = crate::proc::sweep_token(&run.token);
    tracing::info!(run = %run.run, ?swept, "an open run without a runner");
    match report {
        Some(report) => ended(looper, &run.run, report),
        None => {
            let end = Box::new(lost(
                "daemon and runner were gone; what was left of it was ended".to_owned(),
            ));
            looper.event(Event::RunExited {
                run: run.run.clone(),
                end,
            });
        }
    }
}

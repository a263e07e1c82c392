//! After a restart: every run that the ledger knows as open is found alive, found ended, or swept (P4, W13).
//!
//! ```text
//! a runner has it, alive           → adopted: permits, timeouts and output go on
//! a runner has it, ended           → its report is recorded, the runner may free its slot
//! no runner, exit.json is there    → that is its end
//! no runner, no exit.json          → its processes are ended by token, the run is lost
//! a client that lives owns it      → left alone (`flockd run`, `flockd lease claim -- CMD`)
//! ```

use super::effector::Effector;
use super::launch::{lost, run_end};
use super::looper::Looper;
use crate::budget::SlotDir;
use crate::engine::Event;
use crate::runner::{Adopted, ExitReport, StopHow, client_lives, read_exit};
use crate::types::RunId;
use std::collections::{HashMap, HashSet};

/// What the ledger says of an open run.
pub(super) struct OpenRun {
    pub(super) run: RunId,
    pub(super) slots: u32,
    pub(super) token: String,
    pub(super) started: bool,
    pub(super) of_client: bool,
}

/// Runs of clients: those that live are left alone, the others are over. Before the task files are read,
/// since a loop with nothing to do ends with them.
pub(super) fn reconcile_clients(
    looper: &mut Looper,
    open: &mut Vec<OpenRun>,
    adopted: &[Adopted],
    slots: &SlotDir,
) {
    let elsewhere: HashSet<RunId> = slots
        .held()
        .into_iter()
        .map(|(_, text)| text.run_id)
        .collect();
    let (clients, of_tasks): (Vec<_>, Vec<_>) = std::mem::take(open)
        .into_iter()
        .partition(|run| run.of_client);
    // A nested `flockd run` carries the token of the run that it is part of and shares its fate.
    let outer_lives = |run: &OpenRun| {
        let outer = of_tasks.iter().find(|outer| outer.token == run.token)?;
        Some(adopted.iter().any(|adopted| adopted.run_id == outer.run))
    };
    let (living, gone): (Vec<_>, Vec<_>) = clients.into_iter().partition(|run| {
        outer_lives(run) != Some(false)
            && (elsewhere.contains(&run.run) || client_lives(&looper.state_dir, &run.run))
    });
    for run in gone {
        let token_lives =
            outer_lives(&run) == Some(true) || living.iter().any(|l| l.token == run.token);
        bury(looper, &run, token_lives);
    }
    *open = of_tasks;
}

/// Brings the core up to date with what really runs of its tasks.
pub(super) fn reconcile(
    looper: &mut Looper,
    effector: &Effector,
    open: Vec<OpenRun>,
    adopted: Vec<Adopted>,
) {
    let mut found: HashMap<RunId, Adopted> =
        adopted.into_iter().map(|a| (a.run_id.clone(), a)).collect();
    for run in open {
        looper.tokens.insert(run.run.clone(), run.token.clone());
        match found.remove(&run.run) {
            Some(adopted) => adopt(looper, effector, &run, adopted),
            None => bury(looper, &run, false),
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

/// With a token that lives on in another run, what is left is that run's to end.
fn bury(looper: &mut Looper, run: &OpenRun, token_lives: bool) {
    let report = read_exit(&looper.state_dir, &run.run).ok().flatten();
    // Also after an exit.json: nothing with this token may be left before its slot is used again.
    let swept = (!token_lives).then(|| crate::proc::sweep_token(&run.token));
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

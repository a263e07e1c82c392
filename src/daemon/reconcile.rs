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
use crate::proc::Identity;
use crate::runner::{Adopted, ExitReport, StopHow, read_exit};
use crate::types::RunId;
use std::collections::{HashMap, HashSet};

/// What the ledger says of an open run.
pub(super) struct OpenRun {
    pub(super) run: RunId,
    pub(super) slots: u32,
    pub(super) token: String,
    /// Its child, once that was recorded.
    pub(super) started: Option<Identity>,
    /// Of a client (`flockd run`, `lease claim -- CMD`): the client itself watches over it.
    pub(super) of_client: bool,
}

/// What is to be done about an open run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// One of our runners has it.
    Adopt,
    /// Another living process has it.
    LeaveAlone,
    /// Nobody has it. Its processes are ended by token unless a living run carries the same one: a
    /// nested `flockd run` is part of its run's tree and token.
    Bury { sweep: bool },
}

#[derive(Debug, Clone, Copy)]
struct Findings {
    adopted: bool,
    holds_slot: bool,
    child_alive: bool,
    token_shared: bool,
}

fn fate(run: &OpenRun, found: Findings) -> Fate {
    if found.adopted {
        return Fate::Adopt;
    }
    if run.of_client && (run.started.is_none() || found.holds_slot || found.child_alive) {
        return Fate::LeaveAlone;
    }
    Fate::Bury {
        sweep: !found.token_shared,
    }
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
    let living: HashSet<String> = open
        .iter()
        .filter(|run| found.contains_key(&run.run) || elsewhere.contains(&run.run))
        .map(|run| run.token.clone())
        .collect();
    for run in open {
        looper.tokens.insert(run.run.clone(), run.token.clone());
        let adopted = found.remove(&run.run);
        let findings = Findings {
            adopted: adopted.is_some(),
            holds_slot: elsewhere.contains(&run.run),
            child_alive: run.started.is_some_and(|child| child.is_alive()),
            token_shared: living.contains(&run.token),
        };
        match (fate(&run, findings), adopted) {
            (Fate::Adopt, Some(adopted)) => adopt(looper, effector, &run, adopted),
            (Fate::Bury { sweep }, _) => bury(looper, &run, sweep),
            _ => {}
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
    if run.started.is_none()
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

fn bury(looper: &mut Looper, run: &OpenRun, sweep: bool) {
    let report = read_exit(&looper.state_dir, &run.run).ok().flatten();
    // Also after an exit.json: nothing with this token may be left before its slot is used again.
    let swept = sweep.then(|| crate::proc::sweep_token(&run.token));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn run(of_client: bool, started: bool) -> OpenRun {
        OpenRun {
            run: RunId::new("R1").unwrap(),
            slots: 1,
            token: "t".to_owned(),
            started: started.then_some(Identity {
                pid: 1,
                start_ticks: 1,
            }),
            of_client,
        }
    }

    fn findings(text: &str) -> Findings {
        Findings {
            adopted: text.contains('a'),
            holds_slot: text.contains('s'),
            child_alive: text.contains('c'),
            token_shared: text.contains('t'),
        }
    }

    #[test]
    fn p4_a_restart_adopts_ours_leaves_clients_alone_and_buries_the_dead() {
        let check = |of_client, started, found: &str, expected| {
            assert_eq!(
                fate(&run(of_client, started), findings(found)),
                expected,
                "{of_client} {started} {found:?}"
            );
        };
        check(false, true, "asc", Fate::Adopt);
        check(false, false, "a", Fate::Adopt);
        check(false, true, "", Fate::Bury { sweep: true });
        check(false, true, "c", Fate::Bury { sweep: true });
        check(true, true, "s", Fate::LeaveAlone);
        check(true, true, "c", Fate::LeaveAlone);
        check(true, false, "", Fate::LeaveAlone);
        check(true, true, "", Fate::Bury { sweep: true });
        check(true, true, "t", Fate::Bury { sweep: false });
    }
}

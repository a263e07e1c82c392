//! The bounded part of the state that only people read: ended cycles, blockers, warnings.

use super::state::InFlight;
use crate::types::{TaskId, Timestamp};
use std::collections::VecDeque;

/// Ended cycles kept (config §6).
const CYCLES_MAX: usize = 50;
/// Blockers and warnings kept, each.
const LINES_MAX: usize = 50;

/// One attempt at a task, as the view shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cycle {
    pub(super) task: TaskId,
    pub(super) title: String,
    pub(super) worker: u32,
    pub(super) iteration: u32,
    pub(super) stage: Option<String>,
    pub(super) runs: Vec<String>,
    pub(super) decision: String,
    pub(super) changed_files: Vec<String>,
    pub(super) started_at: Timestamp,
    pub(super) ended_at: Option<Timestamp>,
}

impl Cycle {
    /// One cycle per worker.
    pub(super) fn of(
        task: &TaskId,
        flight: &InFlight,
        decision: &str,
        changed: &[String],
        ended_at: Option<Timestamp>,
    ) -> Vec<Self> {
        flight
            .workers
            .iter()
            .map(|(no, worker)| Self {
                task: task.clone(),
                title: flight.title.clone(),
                worker: *no,
                iteration: flight.iteration,
                stage: flight
                    .stages
                    .get(worker.passed_stages.len())
                    .or(flight.stages.last())
                    .cloned(),
                runs: flight
                    .runs
                    .iter()
                    .filter(|(_, r)| r.worker == *no)
                    .map(|(id, _)| id.to_string())
                    .collect(),
                decision: decision.to_owned(),
                changed_files: match &worker.captured {
                    Some(captured) => captured.changed_files.clone(),
                    None => changed.to_vec(),
                },
                started_at: flight.started_at,
                ended_at,
            })
            .collect()
    }
}

/// Bounded lists, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct History {
    cycles: VecDeque<Cycle>,
    blockers: VecDeque<String>,
    warnings: VecDeque<String>,
}

fn push<T>(list: &mut VecDeque<T>, item: T, max: usize) {
    list.push_back(item);
    if list.len() > max {
        list.pop_front();
    }
}

impl History {
    pub(super) fn new_loop(&mut self) {
        self.blockers.clear();
        self.warnings.clear();
    }

    pub(super) fn close(&mut self, cycles: Vec<Cycle>) {
        for cycle in cycles {
            push(&mut self.cycles, cycle, CYCLES_MAX);
        }
    }

    /// De-duplicated, order kept (behaviour 8).
    pub(super) fn blocker(&mut self, line: String) {
        if !self.blockers.contains(&line) {
            push(&mut self.blockers, line, LINES_MAX);
        }
    }

    pub(super) fn warning(&mut self, line: String) {
        if !self.warnings.contains(&line) {
            push(&mut self.warnings, line, LINES_MAX);
        }
    }

    pub(super) fn cycles(&self) -> impl Iterator<Item = &Cycle> {
        self.cycles.iter()
    }

    pub(super) fn blockers(&self) -> impl Iterator<Item = &str> {
        self.blockers.iter().map(String::as_str)
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }
}

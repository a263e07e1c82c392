//! A batch's admission: given what each call declared and how far each is, which may start now.
//!
//! Anything not declared safe is exclusive (P8: the gate never guesses). The caller owns the calls
//! and their permits; this module must not know what a call is.

use crate::config::{GateConfig, GateMode, RoleConcurrency};

/// What a call declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallDecl {
    /// May it overlap with siblings that are safe too.
    pub concurrency: RoleConcurrency,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPhase {
    /// Not started.
    Pending,
    /// Started or waiting for its permit, not ended.
    Open,
    /// Ended; its result does not matter here.
    Ended,
}

/// Why a pending call does not start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It may start.
    Admitted,
    /// The gate is off or the batch has one call: in order, one at a time.
    Sequential,
    /// `whole-batch`: some call of the batch is not declared safe.
    UnsafeSibling,
    /// `claims`: this earlier unfinished call conflicts.
    Conflicts(usize),
    /// So many calls of the batch run already.
    BatchFull(u32),
}

/// The gate over one batch.
#[derive(Debug, Clone)]
pub struct BatchGate {
    parallel: bool,
    claims: bool,
    at_once_max: u32,
}

impl BatchGate {
    /// A gate for batches under this configuration; `roles_max` is Z.
    #[must_use]
    pub fn new(config: &GateConfig, roles_max: u32) -> Self {
        Self {
            parallel: config.enabled,
            claims: config.mode == GateMode::Claims,
            at_once_max: config.per_batch_max.min(roles_max).max(1),
        }
    }

    /// The verdict on every call, in input order; [`Reason::Admitted`] means "start it now".
    /// Calls that are open or ended get [`Reason::Admitted`] too and are not to be started again.
    #[must_use]
    pub fn decide(&self, calls: &[(CallDecl, CallPhase)]) -> Vec<Reason> {
        let safe = |d: &CallDecl| d.concurrency == RoleConcurrency::ConcurrentSafe;
        let all_safe = calls.iter().all(|(d, _)| safe(d));
        let intent = self.parallel && calls.len() > 1;
        let mut open = calls.iter().filter(|(_, p)| *p == CallPhase::Open).count();
        let mut earlier_unfinished: Vec<(usize, bool)> = Vec::new();
        let mut verdicts = Vec::with_capacity(calls.len());
        for (i, (decl, phase)) in calls.iter().enumerate() {
            let reason = match phase {
                CallPhase::Ended | CallPhase::Open => Reason::Admitted,
                CallPhase::Pending => {
                    let blocker = earlier_unfinished
                        .iter()
                        .find(|(_, s)| !(intent && safe(decl) && *s));
                    match blocker {
                        Some(_) if !intent => Reason::Sequential,
                        Some((j, _)) if self.claims => Reason::Conflicts(*j),
                        _ if intent
                            && !self.claims
                            && !all_safe
                            && !earlier_unfinished.is_empty() =>
                        {
                            Reason::UnsafeSibling
                        }
                        Some((j, _)) => Reason::Conflicts(*j),
                        None if open >= self.at_once_max as usize => {
                            Reason::BatchFull(self.at_once_max)
                        }
                        None => {
                            open += 1;
                            Reason::Admitted
                        }
                    }
                }
            };
            if *phase != CallPhase::Ended {
                earlier_unfinished.push((i, safe(decl)));
            }
            verdicts.push(reason);
        }
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(enabled: bool, mode: GateMode, per_batch_max: u32, roles: u32) -> BatchGate {
        BatchGate::new(
            &GateConfig {
                enabled,
                mode,
                per_batch_max,
            },
            roles,
        )
    }

    /// `s` safe, `x` exclusive; upper case = open, `.` = ended.
    fn admitted(gate: &BatchGate, batch: &str) -> Vec<usize> {
        let calls: Vec<_> = batch
            .chars()
            .map(|c| {
                let concurrency = match c.to_ascii_lowercase() {
                    's' => RoleConcurrency::ConcurrentSafe,
                    _ => RoleConcurrency::Sequential,
                };
                let phase = match c {
                    '.' => CallPhase::Ended,
                    c if c.is_uppercase() => CallPhase::Open,
                    _ => CallPhase::Pending,
                };
                (CallDecl { concurrency }, phase)
            })
            .collect();
        gate.decide(&calls)
            .iter()
            .zip(&calls)
            .enumerate()
            .filter(|(_, (r, (_, p)))| **r == Reason::Admitted && *p == CallPhase::Pending)
            .map(|(i, _)| i)
            .collect()
    }

    #[test]
    fn p8_undeclared_means_exclusive() {
        let claims = gate(true, GateMode::Claims, 4, 4);
        assert_eq!(admitted(&claims, "ssxs"), [0, 1]);
        assert_eq!(admitted(&claims, "S.xs"), [] as [usize; 0]);
        assert_eq!(admitted(&claims, "..xs"), [2]);
        assert_eq!(admitted(&claims, "..Xs"), [] as [usize; 0]);
        assert_eq!(admitted(&claims, "...s"), [3]);
        assert_eq!(admitted(&claims, "xss"), [0]);
    }

    #[test]
    fn whole_batch_is_all_or_nothing() {
        let whole = gate(true, GateMode::WholeBatch, 4, 4);
        assert_eq!(admitted(&whole, "sss"), [0, 1, 2]);
        assert_eq!(admitted(&whole, "ssx"), [0]);
        assert_eq!(admitted(&whole, ".sx"), [1]);
    }

    #[test]
    fn an_off_gate_is_sequential_and_caps_hold() {
        let off = gate(false, GateMode::Claims, 4, 4);
        assert_eq!(admitted(&off, "sss"), [0]);
        assert_eq!(admitted(&off, "Sss"), [] as [usize; 0]);
        let two = gate(true, GateMode::Claims, 4, 2);
        assert_eq!(admitted(&two, "ssss"), [0, 1]);
        assert_eq!(admitted(&two, "S.ss"), [2]);
    }
}

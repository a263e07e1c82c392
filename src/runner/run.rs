//! The pure state machine of one run: what happens next, never how. No clock, no process, no file.

use serde::{Deserialize, Serialize};

/// Why flockd stopped a run. The first one stays: it is why the run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// On request.
    Cancelled,
    /// Its deadline.
    TimedOut,
    /// No output and no CPU time.
    Idle,
    /// Too much output.
    OutputLimit,
}

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waits for slots. Nothing exists yet.
    Waiting,
    /// Holds its slots; the child is about to exist, or a passing shortage delays it.
    Starting,
    /// The child lives.
    Running,
    /// TERM was sent; KILL follows after the grace time. No reason: the child ended by itself and left
    /// others behind.
    Stopping(Option<StopReason>),
    /// KILL was sent, and again until nothing is left.
    Killing(Option<StopReason>),
    /// Nothing of it lives.
    Ended(Option<StopReason>),
}

/// What happens to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// All its slots are locked and name it.
    SlotsTaken,
    /// The child exists.
    Spawned,
    /// A passing shortage; the timer tries again.
    SpawnDelayed,
    /// The child cannot be started, or the run may not start.
    SpawnFailed,
    /// Stop it: TERM, grace, KILL.
    Stop(StopReason),
    /// Stop it: KILL.
    StopNow(StopReason),
    /// The child ended and others of its tree are left.
    LeaderEnded,
    /// Nothing of its tree is left.
    TreeGone,
    /// The grace time (or the pause between two kills) is over.
    TimeOver,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing.
    Wait,
    /// Start the child.
    Spawn,
    /// TERM and CONT to the group and every descendant.
    Term,
    /// KILL to every descendant.
    Kill,
    /// Report the end.
    Finish,
}

/// An input that cannot happen in a phase: a mistake in the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run in phase {phase:?} cannot get {input:?}")]
pub(super) struct Illegal {
    /// Where it was.
    pub phase: Phase,
    /// What came.
    pub input: Input,
}

/// The one transition function.
///
/// # Errors
/// [`Illegal`] for an input that the phase excludes.
pub(super) fn next(phase: Phase, input: Input) -> Result<(Phase, Act), Illegal> {
    use Input as I;
    use Phase as P;
    Ok(match (phase, input) {
        (P::Waiting, I::SlotsTaken) => (P::Starting, Act::Spawn),
        (P::Waiting | P::Starting, I::SpawnFailed) => (P::Ended(None), Act::Finish),
        (P::Waiting | P::Starting, I::Stop(reason) | I::StopNow(reason)) => {
            (P::Ended(Some(reason)), Act::Finish)
        }
        (P::Starting, I::Spawned) => (P::Running, Act::Wait),
        (P::Starting, I::SpawnDelayed) => (P::Starting, Act::Wait),
        (P::Starting, I::TimeOver) => (P::Starting, Act::Spawn),
        (P::Running, I::LeaderEnded) => (P::Stopping(None), Act::Term),
        (P::Running, I::Stop(reason)) => (P::Stopping(Some(reason)), Act::Term),
        (P::Running, I::StopNow(reason)) => (P::Killing(Some(reason)), Act::Kill),
        (P::Running, I::TreeGone) => (P::Ended(None), Act::Finish),
        (P::Stopping(reason), I::TimeOver | I::StopNow(_)) => (P::Killing(reason), Act::Kill),
        (P::Killing(reason), I::TimeOver | I::LeaderEnded) => (P::Killing(reason), Act::Kill),
        (P::Stopping(reason) | P::Killing(reason), I::TreeGone) => (P::Ended(reason), Act::Finish),
        // The leader went on request; the rest has had its TERM, but a child forked meanwhile has not.
        (P::Stopping(reason), I::LeaderEnded) => (P::Stopping(reason), Act::Term),
        (P::Stopping(_) | P::Killing(_) | P::Ended(_), I::Stop(_))
        | (P::Killing(_) | P::Ended(_), I::StopNow(_)) => (phase, Act::Wait),
        (phase, input) => return Err(Illegal { phase, input }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANCEL: Option<StopReason> = Some(StopReason::Cancelled);
    const LATE: StopReason = StopReason::TimedOut;

    /// `killing/cancelled, Kill`; `-` for an illegal input.
    fn outcome(phase: Phase, input: Input) -> String {
        let Ok((phase, act)) = next(phase, input) else {
            return "-".to_owned();
        };
        let reason = |reason| match reason {
            CANCEL => "/cancelled",
            Some(LATE) => "/late",
            None => "",
            Some(_) => "/other",
        };
        let phase = match phase {
            Phase::Waiting => "waiting".to_owned(),
            Phase::Starting => "starting".to_owned(),
            Phase::Running => "running".to_owned(),
            Phase::Stopping(why) => format!("stopping{}", reason(why)),
            Phase::Killing(why) => format!("killing{}", reason(why)),
            Phase::Ended(why) => format!("ended{}", reason(why)),
        };
        format!("{phase}, {act:?}")
    }

    #[test]
    fn every_pair_of_phase_and_input_is_decided() {
        const STOPPING: Phase = Phase::Stopping(CANCEL);
        const KILLING: Phase = Phase::Killing(CANCEL);
        const ENDED: Phase = Phase::Ended(CANCEL);
        let stop = Input::Stop(LATE);
        let now = Input::StopNow(LATE);
        let legal = [
            (Phase::Waiting, Input::SlotsTaken, "starting, Spawn"),
            (Phase::Waiting, Input::SpawnFailed, "ended, Finish"),
            (Phase::Waiting, stop, "ended/late, Finish"),
            (Phase::Waiting, now, "ended/late, Finish"),
            (Phase::Starting, Input::Spawned, "running, Wait"),
            (Phase::Starting, Input::SpawnDelayed, "starting, Wait"),
            (Phase::Starting, Input::SpawnFailed, "ended, Finish"),
            (Phase::Starting, Input::TimeOver, "starting, Spawn"),
            (Phase::Starting, stop, "ended/late, Finish"),
            (Phase::Starting, now, "ended/late, Finish"),
            (Phase::Running, stop, "stopping/late, Term"),
            (Phase::Running, now, "killing/late, Kill"),
            (Phase::Running, Input::LeaderEnded, "stopping, Term"),
            (Phase::Running, Input::TreeGone, "ended, Finish"),
            (STOPPING, stop, "stopping/cancelled, Wait"),
            (STOPPING, now, "killing/cancelled, Kill"),
            (STOPPING, Input::LeaderEnded, "stopping/cancelled, Term"),
            (STOPPING, Input::TreeGone, "ended/cancelled, Finish"),
            (STOPPING, Input::TimeOver, "killing/cancelled, Kill"),
            (KILLING, stop, "killing/cancelled, Wait"),
            (KILLING, now, "killing/cancelled, Wait"),
            (KILLING, Input::LeaderEnded, "killing/cancelled, Kill"),
            (KILLING, Input::TreeGone, "ended/cancelled, Finish"),
            (KILLING, Input::TimeOver, "killing/cancelled, Kill"),
            (ENDED, stop, "ended/cancelled, Wait"),
            (ENDED, now, "ended/cancelled, Wait"),
        ];
        let phases = [
            Phase::Waiting,
            Phase::Starting,
            Phase::Running,
            STOPPING,
            KILLING,
            ENDED,
        ];
        use Input::{
            LeaderEnded, SlotsTaken, SpawnDelayed, SpawnFailed, Spawned, TimeOver, TreeGone,
        };
        let others = [
            SlotsTaken,
            Spawned,
            SpawnDelayed,
            SpawnFailed,
            LeaderEnded,
            TreeGone,
            TimeOver,
        ];
        for phase in phases {
            for input in others.into_iter().chain([stop, now]) {
                let expected = legal.iter().find(|row| (row.0, row.1) == (phase, input));
                let expected = expected.map_or("-", |row| row.2);
                assert_eq!(outcome(phase, input), expected, "{phase:?} {input:?}");
            }
        }
    }

    #[test]
    fn a_deadline_passed_while_stragglers_are_ended_does_not_change_the_outcome() {
        let (phase, _) = next(Phase::Running, Input::LeaderEnded).unwrap();
        let (phase, _) = next(phase, Input::Stop(LATE)).unwrap();
        assert_eq!(phase, Phase::Stopping(None));
    }
}

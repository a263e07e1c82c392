//! Ending a run's tree: TERM, KILL, reap, and the looks at its bounds while it lives.

use super::active::{Active, Mono};
use super::run::{Input, Phase, StopReason};
use crate::fsx;
use crate::proc::{
    Identity, Reaped, Sent, children_usage, descendants, peak_rss_kib, reap, signal, signal_group,
    tree_cpu_millis,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// Between two kills of what is still there: a process forked during the look before.
const KILL_AGAIN_FIRST: Duration = Duration::from_millis(10);
/// The longest pause: a process in uninterruptible sleep may stay for minutes, and a look reads all of
/// `/proc`.
const KILL_AGAIN_MAX: Duration = Duration::from_secs(1);

/// What is known of the end of a tree.
#[derive(Debug, Default)]
pub(super) struct TreeEnd {
    /// Processes that outlived the leader.
    stragglers: BTreeSet<Identity>,
    kill_pause: Duration,
}

impl TreeEnd {
    /// How many processes outlived the leader and were ended.
    pub(super) fn stragglers_killed(&self) -> u32 {
        u32::try_from(self.stragglers.len()).unwrap_or(u32::MAX)
    }
}

impl Active {
    /// Children may have ended: waits for all that have, and tells the machine what that means.
    pub(super) fn on_child_signal(&mut self, now: Mono) {
        let leader = self.child.map(|child| child.pid);
        let mut leader_ended = false;
        let gone = loop {
            match reap() {
                Reaped::Ended { pid, status } => {
                    if Some(pid) == leader && self.status.is_none() {
                        self.status = Some(status);
                        leader_ended = true;
                    }
                }
                Reaped::Waiting => break false,
                Reaped::NoChild => break true,
            }
        };
        let lives = matches!(
            self.phase,
            Phase::Running | Phase::Stopping(_) | Phase::Killing(_)
        );
        if gone && lives {
            self.feed(Input::TreeGone, now);
        } else if leader_ended && lives {
            self.feed(Input::LeaderEnded, now);
        }
    }

    /// TERM to the child's group and to every descendant, also those in sessions of their own.
    pub(super) fn term_tree(&mut self, now: Mono) {
        self.signal_tree(Sent::Term);
        // A second TERM, to those that the leader left behind, does not prolong the grace time.
        self.act_at
            .get_or_insert(now + Duration::from_millis(self.spec.limits.grace_ms));
    }

    /// KILL to every descendant. Comes again until nothing is left.
    pub(super) fn kill_tree(&mut self, now: Mono) {
        self.signal_tree(Sent::Kill);
        let pause = (self.tree_end.kill_pause * 2).clamp(KILL_AGAIN_FIRST, KILL_AGAIN_MAX);
        self.tree_end.kill_pause = pause;
        self.act_at = Some(now + pause);
    }

    fn signal_tree(&mut self, sent: Sent) {
        let leader = self.child.filter(|_| self.status.is_none());
        // The group's number is the unreaped leader's, so it cannot be anybody else's. A terminal's
        // group is the caller's own and is left alone.
        if let Some(leader) = leader.filter(|_| self.outputs.is_some()) {
            signal_group(leader.pid, sent);
            signal_group(leader.pid, Sent::Cont);
        }
        for identity in descendants(self.own_pid()) {
            if leader.is_none() {
                self.tree_end.stragglers.insert(identity);
            }
            // A group that was signalled above gets the second TERM for nothing, as `kill` twice does;
            // for the leader's own group it is left out.
            let in_leaders_group = leader.is_some_and(|leader| {
                self.outputs.is_some()
                    && crate::proc::stat_of(identity.pid)
                        .is_some_and(|stat| stat.group == leader.pid)
            });
            if !in_leaders_group || sent == Sent::Kill {
                signal(identity, sent);
            }
            if sent == Sent::Term && !in_leaders_group {
                signal(identity, Sent::Cont);
            }
        }
    }

    /// Looks at outputs, idleness and memory, as far as that is due.
    pub(super) fn look(&mut self, now: Mono) {
        self.look_at_output(now);
        if self.phase != Phase::Running {
            return;
        }
        let due = self
            .idle_watch
            .as_ref()
            .is_some_and(|watch| watch.due() <= now);
        if !due {
            return;
        }
        let used = children_usage();
        let cpu = tree_cpu_millis(self.own_pid())
            + used.user_ms.saturating_sub(self.usage_before.user_ms)
            + used.system_ms.saturating_sub(self.usage_before.system_ms);
        for identity in descendants(self.own_pid()) {
            self.peak_rss_kib = self.peak_rss_kib.max(peak_rss_kib(identity.pid));
        }
        if self
            .idle_watch
            .as_mut()
            .is_some_and(|watch| watch.looked(cpu, now))
        {
            self.stop_for(StopReason::Idle, now);
        }
    }

    fn look_at_output(&mut self, now: Mono) {
        let (Some(outputs), Some(watch)) = (&self.outputs, &mut self.output_watch) else {
            return;
        };
        if watch.due() > now {
            return;
        }
        let sizes = [0, 1].map(|at: usize| {
            outputs
                .get(at)
                .and_then(|file| file.metadata().ok())
                .map_or(0, |meta| meta.len())
        });
        let changed = watch.looked(sizes, now);
        for (file, surplus) in outputs.iter().zip(watch.surplus()) {
            if let Some((from, len)) = surplus.filter(|_| changed) {
                // A file system that cannot keeps the bytes until the end; the cut there still comes.
                let _ = fsx::punch_hole(file, from, len);
            }
        }
        let over = watch.is_over_stop();
        if let Some(child) = self.child.filter(|_| self.status.is_none()) {
            self.peak_rss_kib = self.peak_rss_kib.max(peak_rss_kib(child.pid));
        }
        if let Some(idle) = self.idle_watch.as_mut().filter(|_| changed) {
            idle.output_seen(now);
        }
        if over && self.phase == Phase::Running {
            self.stop_for(StopReason::OutputLimit, now);
        }
    }
}

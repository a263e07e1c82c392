//! Signals by degrees: the first drains, the second stops, the third kills, the fourth ends the daemon
//! itself even if the runtime hangs. A hang-up does not stop the loop: people close terminals at night.

use super::input::Input;
use crate::engine::{Event, StopLevel, StopSource};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// The exit code of a daemon that was ended by its fourth signal.
const INTERRUPTED: i32 = 130;

/// Turns signals into stop events until the loop is gone.
pub(super) fn listen(inputs: mpsc::UnboundedSender<Input>) -> std::io::Result<()> {
    let hard_exit = Arc::new(AtomicBool::new(false));
    for number in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(
            number,
            INTERRUPTED,
            Arc::clone(&hard_exit),
        )?;
    }
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        let mut seen = 0_u32;
        loop {
            tokio::select! {
                Some(()) = interrupt.recv() => seen += 1,
                Some(()) = terminate.recv() => seen += 1,
                Some(()) = hangup.recv() => continue,
                else => return,
            }
            let level = match seen {
                1 => StopLevel::Drain,
                2 => StopLevel::Now,
                _ => {
                    hard_exit.store(true, Ordering::SeqCst);
                    StopLevel::Kill
                }
            };
            if inputs
                .send(Input::Event(Event::Stop(level, StopSource::Signal)))
                .is_err()
            {
                return;
            }
        }
    });
    Ok(())
}

//! Signals the agent sends to itself, ignores, or ends on.

use nix::sys::signal::{SigSet, Signal, raise};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sends a signal to this process and, when it survives, goes on.
pub(crate) fn kill_self(number: i32) -> nix::Result<()> {
    raise(Signal::try_from(number)?)
}

/// Blocks TERM, INT and HUP for this process and all its later children: they stay pending for ever.
pub(crate) fn ignore_term() -> nix::Result<()> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        set.add(signal);
    }
    set.thread_block()
}

/// Ends with a code when TERM comes.
pub(crate) fn exit_on_term(code: i32) -> std::io::Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(Signal::SIGTERM as i32, code, always)?;
    Ok(())
}

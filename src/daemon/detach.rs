//! `start --detach`: the same program again in the background, waited for until it answers.

use crate::api::Request;
use crate::proc::{ExitStatus, Reaped, reap};
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the background daemon may take until it answers.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How often it is asked: a start is over in milliseconds, and nothing tells us of it.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Starts `argv` in the background and waits until its control socket answers or it ends.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command's own output"
)]
pub(super) fn detach(state_dir: &Path, argv: &[OsString]) -> u8 {
    let log = state_dir.join("log").join("daemon.out");
    let opened = crate::fsx::create_dir_all(&state_dir.join("log"))
        .and_then(|()| crate::fsx::open_output(&log));
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            eprintln!("flockd: {error}");
            return 1;
        }
    };
    let pid = match crate::proc::spawn_detached(argv, &file) {
        Ok(pid) => pid,
        Err(error) => {
            eprintln!("flockd: the daemon cannot be started: {error}");
            return 1;
        }
    };
    let until = Instant::now() + READY_WITHIN;
    while Instant::now() < until {
        if answers(state_dir, pid) {
            println!(
                "flockd runs as pid {}; `flockd status` shows it, its output is in {}",
                pid,
                log.display()
            );
            return 0;
        }
        if let Reaped::Ended { status, .. } = reap() {
            let code = match status {
                ExitStatus::Code(code) => u8::try_from(code).unwrap_or(1),
                ExitStatus::Signal(_) => 1,
            };
            // It ended at once: its own words say why, and a short loop is no failure.
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            let tail: Vec<&str> = said.lines().rev().take(20).collect();
            for line in tail.iter().rev() {
                eprintln!("{line}");
            }
            return code;
        }
        std::thread::sleep(ASK_EVERY);
    }
    eprintln!(
        "flockd: pid {} does not answer within {} s; see {}",
        pid,
        READY_WITHIN.as_secs(),
        log.display()
    );
    1
}

/// Ready means: it accepts and answers with its own pid (fault 24), not that a path exists.
fn answers(state_dir: &Path, pid: u32) -> bool {
    let hello = Request::Hello {
        protocol: crate::api::PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let Ok(mut client) = crate::client::Client::connect(state_dir) else {
        return false;
    };
    matches!(client.request(&hello), Ok(crate::api::Reply::Hello { pid: theirs, .. }) if theirs == pid)
}

//! What people see of a loop: a line per change, a progress line on a terminal, a summary at the end.

use crate::engine::Finish;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};

/// Where progress goes.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A spinner on a terminal (unless `NO_COLOR` or `TERM=dumb` asks for plain text), lines elsewhere.
    pub(super) fn new() -> Self {
        let bar = (std::io::stderr().is_terminal() && !is_plain()).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
            bar
        });
        Self { bar }
    }

    /// One line that stays. Losing it (a closed terminal) stops nothing.
    pub(super) fn say(&self, line: &str) {
        tracing::info!(target: "flockd::loop", "{line}");
        match &self.bar {
            Some(bar) => {
                bar.println(line);
                bar.set_message(line.to_owned());
            }
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }

    /// The last words, on stdout.
    pub(super) fn summary(&self, finish: &Finish, lines: &[String]) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let mut out = std::io::stdout().lock();
        for line in lines {
            drop(writeln!(out, "{line}"));
        }
        drop(writeln!(out, "{}: {}", finish.decision, finish.reason));
        drop(out.flush());
    }
}

/// `NO_COLOR` or a terminal without cursor movement asks for plain text.
fn is_plain() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
        || std::env::var_os("TERM").is_none_or(|t| t == "dumb")
}

/// Days of log files kept.
const LOG_FILES_MAX: usize = 7;

/// Logs to stderr (warnings, or what `FLOCKD_LOG` says) and to `log/` in the state directory, one file
/// a day. The guard flushes on drop: keep it to the end.
pub(super) fn log_to(
    state_dir: &std::path::Path,
) -> Option<tracing_appender::non_blocking::WorkerGuard> {
    use tracing_subscriber::{
        EnvFilter, Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt,
    };
    let file = tracing_appender::rolling::Builder::new()
        .rotation(tracing_appender::rolling::Rotation::DAILY)
        .filename_prefix("flockd")
        .filename_suffix("log")
        .max_log_files(LOG_FILES_MAX)
        .build(state_dir.join("log"))
        .ok()?;
    let (writer, guard) = tracing_appender::non_blocking::NonBlockingBuilder::default()
        .lossy(false)
        .finish(file);
    let to_stderr =
        EnvFilter::try_from_env("FLOCKD_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let to_file = fmt::layer().with_ansi(false).with_writer(writer);
    tracing_subscriber::registry()
        .with(
            fmt::layer()
                .with_ansi(std::io::stderr().is_terminal() && !is_plain())
                .with_writer(std::io::stderr)
                .with_filter(to_stderr),
        )
        .with(to_file.with_filter(EnvFilter::new("info")))
        .try_init()
        .ok()?;
    Some(guard)
}

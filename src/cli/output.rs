//! Standard output for data and standard error for words; tables; terminal-safe text.

use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};

/// Buffered standard output. Flush before the command ends: an error in a destructor is lost.
pub(super) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// One JSON document, indented for people on a terminal, and a line end.
pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> Result<(), super::failure::Failure> {
    let mut out = stdout();
    if io::stdout().is_terminal() {
        serde_json::to_writer_pretty(&mut out, value)?;
    } else {
        serde_json::to_writer(&mut out, value)?;
    }
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Text and a line end.
pub(super) fn line(text: &str) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{text}")?;
    out.flush()
}

/// A sentence for people on standard error.
pub(super) fn say(text: impl std::fmt::Display) {
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(io::stderr(), "flockd: {text}");
}

/// Columns as wide as their widest cell; the last one is not padded. Control characters are shown, not
/// obeyed: titles and details come from files and agents.
pub(super) fn table(out: &mut impl Write, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let clean: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| printable(cell)).collect())
        .collect();
    let width = |column: usize| {
        let cells = clean.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(head.get(column).map_or(0, |h| h.len()))
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut write_row = |cells: &mut dyn Iterator<Item = &str>| -> io::Result<()> {
        let mut text = String::new();
        for (cell, width) in cells.zip(&widths) {
            text.push_str(&format!("{cell:<width$}  "));
        }
        writeln!(out, "{}", text.trim_end())
    };
    write_row(&mut head.iter().copied())?;
    for row in &clean {
        write_row(&mut row.iter().map(String::as_str))?;
    }
    Ok(())
}

/// Text without characters that move a terminal's cursor or change its state.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// `1h 02m`, `3m 04s`, `5s`: how long something has been running.
pub(super) fn elapsed(millis: u64) -> String {
    let seconds = millis / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m {s:02}s"),
        (h, m, _) => format!("{h}h {m:02}m"),
    }
}

//! What the agent writes to its standard streams.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Written at once by `flood`.
const FLOOD_BLOCK: usize = 64 << 10;

/// A line on stdout, flushed.
pub(crate) fn line(text: &str) -> io::Result<()> {
    raw(&format!("{text}\n"))
}

/// Text on stdout as it is, flushed.
pub(crate) fn raw(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A line on stderr; nothing can be done when that fails.
pub(crate) fn error_line(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}

/// So many bytes to both streams at once, in lines of 64 characters.
pub(crate) fn flood(stdout: u64, stderr: u64) -> io::Result<()> {
    let other = std::thread::spawn(move || pour(&mut io::stderr(), stderr));
    pour(&mut io::stdout().lock(), stdout)?;
    other
        .join()
        .map_err(|_| io::Error::other("the stderr thread panicked"))?
}

fn pour(to: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let text = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";
    let block = text.repeat(FLOOD_BLOCK / text.len());
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        to.write_all(block.as_bytes().get(..part).unwrap_or_default())?;
        left -= part as u64;
    }
    to.flush()
}

/// Standard input to standard output.
pub(crate) fn cat() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::stdout().lock())?;
    io::stdout().flush()
}

/// A file's bytes to standard output.
pub(crate) fn replay(path: &Path) -> io::Result<()> {
    io::copy(&mut File::open(path)?, &mut io::stdout().lock())?;
    io::stdout().flush()
}

//! The lines of `run --lines`: read ahead a little, and what each of them means as a command.

use super::failure::Failure;
use std::io::{BufRead, BufReader, Read};
use tokio::sync::mpsc;

/// Lines read ahead of the runs.
const LINES_AHEAD: usize = 64;

/// Numbered lines without the blank ones, a few ahead of their use.
pub(super) fn read_lines(
    input: Box<dyn Read + Send>,
) -> mpsc::Receiver<Result<(usize, String), Failure>> {
    let (tx, rx) = mpsc::channel(LINES_AHEAD);
    std::thread::spawn(move || {
        for (i, line) in BufReader::new(input).lines().enumerate() {
            let item = match line {
                Ok(text) if text.trim().is_empty() => continue,
                Ok(text) => Ok((i + 1, text)),
                Err(error) => Err(Failure::failed(format!("line {}: {error}", i + 1))),
            };
            let failed = item.is_err();
            if tx.blocking_send(item).is_err() || failed {
                return;
            }
        }
    });
    rx
}

/// Plain words are run as they are; anything that a shell would read differently goes through `sh -c`.
pub(super) fn argv_of(line: &str) -> Vec<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || " \t_-./:,@%+".contains(c);
    let mut words = line.split_whitespace();
    // A word like `cd` or `A=1` first is the shell's own business.
    let program = words.next().is_some_and(|w| w.contains('/'));
    if program && line.chars().all(plain) {
        line.split_whitespace().map(str::to_owned).collect()
    } else {
        ["sh", "-c", line].map(str::to_owned).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::argv_of;

    #[test]
    fn only_plain_paths_go_past_the_shell() {
        assert_eq!(argv_of("/bin/echo a  b"), ["/bin/echo", "a", "b"]);
        assert_eq!(argv_of("./x --n=1"), ["sh", "-c", "./x --n=1"]);
        assert_eq!(argv_of("cd /tmp"), ["sh", "-c", "cd /tmp"]);
        assert_eq!(argv_of("/bin/echo $HOME"), ["sh", "-c", "/bin/echo $HOME"]);
    }
}

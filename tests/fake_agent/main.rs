//! A scripted coding agent that misbehaves on demand; owns no knowledge of flockd.
//!
//! `fake-agent STEP -- STEP …` runs the steps in order; `;` separates them too. With no step, or with
//! the single step `prompt`, the steps are the lines of standard input that start with `agent:`.
//! `fake-agent help` lists them. It exits 0 after the last step, 97 when a step is not one.

mod alive;
mod children;
mod look;
mod output;
mod script;
mod signals;

use script::Step;
use std::error::Error;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What a step can fail with; shown on stderr.
type Failure = Box<dyn Error>;

/// The exit code that says the script, not the scripted behaviour, was wrong.
const BAD_SCRIPT: u8 = 97;

/// How long `hold-until` waits (as long as the file's folder exists) before it gives up, so that no test run leaves an agent behind.
const HOLD_MAX: Duration = Duration::from_secs(120);

/// How often `hold-until` looks.
const HOLD_LOOK_EVERY: Duration = Duration::from_millis(3);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match steps(&arguments).and_then(|steps| run(&steps)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output::error_line(&format!("fake-agent: {failure}"));
            ExitCode::from(BAD_SCRIPT)
        }
    }
}

fn steps(arguments: &[String]) -> Result<Vec<Step>, Failure> {
    if arguments.is_empty() || arguments == ["prompt"] {
        let mut prompt = String::new();
        std::io::stdin().read_to_string(&mut prompt)?;
        return Ok(script::from_prompt(&prompt)?);
    }
    Ok(script::from_arguments(arguments))
}

fn run(steps: &[Step]) -> Result<u8, Failure> {
    let mut held = Vec::new(); // Guards of `count-alive`, kept until the end.
    for step in steps {
        let code = match step.name.as_str() {
            "count-alive" => {
                held.push(alive::Alive::register(&PathBuf::from(step.text(0)?))?);
                None
            }
            "exit" => ended(step.number(0)?)?,
            "replay" => {
                output::replay(Path::new(step.text(0)?))?;
                ended(step.number(1)?)?
            }
            _ if say(step)? || act(step)? => None,
            other => return Err(format!("unknown step {other:?}; see fake-agent help").into()),
        };
        if let Some(code) = code {
            return Ok(code);
        }
    }
    Ok(0)
}

/// Steps that only write to the standard streams; false when it is none of them.
fn say(step: &Step) -> Result<bool, Failure> {
    match step.name.as_str() {
        "help" => output::line(script::HELP)?,
        "print" => output::line(&step.rest())?,
        "print-raw" => output::raw(&step.rest())?,
        "eprint" => output::error_line(&step.rest()),
        "verdict" => output::line(&verdict(step)?)?,
        "flood" => output::flood(step.option("--stdout")?, step.option("--stderr")?)?,
        "cat" => output::cat()?,
        "show" => output::replay(Path::new(step.text(0)?))?,
        "print-env" => look::env(&step.words)?,
        "print-fds" => look::descriptors()?,
        "print-sigmask" => look::signal_masks()?,
        "print-cwd" => output::line(&std::env::current_dir()?.to_string_lossy())?,
        "print-ids" => look::process_ids()?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Steps that do something to processes, files or descriptors; false when it is none of them.
fn act(step: &Step) -> Result<bool, Failure> {
    match step.name.as_str() {
        "die-mid-line" => {
            output::raw("{\"type\":\"half a li")?;
            signals::kill_self(9)?;
        }
        "signal-self" => signals::kill_self(i32::try_from(step.number(0)?)?)?,
        "stop-self" => signals::kill_self(19)?,
        "ignore-term" => signals::ignore_term()?,
        "exit-on-term" => signals::exit_on_term(i32::try_from(step.number(0)?)?)?,
        "hang" => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        "sleep" => std::thread::sleep(Duration::from_millis(step.number(0)?.unsigned_abs())),
        "burn" => burn(Duration::from_millis(step.number(0)?.unsigned_abs())),
        "hold-until" => hold_until(Path::new(step.text(0)?))?,
        "fork" => children::fork(step.number(0)?, step.words.get(1..).unwrap_or_default())?,
        "setsid" => children::new_session()?,
        "setsid-child" => children::setsid_child(&step.words)?,
        "double-fork" => children::double_fork(&step.words)?,
        "sh" => children::shell(&step.rest())?,
        "write" | "append" | "touch" => change_file(step)?,
        "close-stdin" => nix::unistd::close(0)?,
        "close-output" => {
            nix::unistd::close(1)?;
            nix::unistd::close(2)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// `verdict pass`, `verdict fail REASON`, `verdict blocked REASON` as the line flockd reads.
fn verdict(step: &Step) -> Result<String, Failure> {
    match step.text(0)? {
        "pass" | "fail" | "blocked" => Ok(format!("verdict: {}", step.rest())),
        other => Err(format!("no verdict {other:?}").into()),
    }
}

/// A code ends the script; a negative one is the signal to die of.
fn ended(code: i64) -> Result<Option<u8>, Failure> {
    if code < 0 {
        signals::kill_self(i32::try_from(-code)?)?;
    }
    Ok(Some(u8::try_from(code)?))
}

fn burn(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn hold_until(path: &Path) -> Result<(), Failure> {
    let end = Instant::now() + HOLD_MAX;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    while !path.exists() && folder.is_none_or(Path::exists) {
        if Instant::now() > end {
            return Err(format!("{} did not appear", path.display()).into());
        }
        std::thread::sleep(HOLD_LOOK_EVERY);
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "an agent writes files as any program does"
)]
fn change_file(step: &Step) -> Result<(), Failure> {
    let path = Path::new(step.text(0)?);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.create(true).write(true);
    match step.name.as_str() {
        "write" => options.truncate(true),
        _ => options.append(true),
    };
    let mut file = options.open(path)?;
    if step.name != "touch" {
        let text = step.words.get(1..).unwrap_or_default().join(" ");
        std::io::Write::write_all(&mut file, format!("{text}\n").as_bytes())?;
    }
    Ok(())
}

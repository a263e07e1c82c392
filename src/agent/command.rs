//! The `command` adapter: any program; prompt on stdin, verdict by exit code and last line (config §3).
//!
//! The kinds that have no adapter of their own yet run as plain commands through this one.

use crate::config::AgentConfig;
use crate::types::{Outcome, Verdict, mask_secrets};

/// What a child reads as its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// The run's prompt file.
    Prompt,
    /// Nothing.
    Null,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPlan {
    /// Program and arguments; not empty.
    pub argv: Vec<String>,
    /// Standard input.
    pub stdin: Stdin,
    /// Names passed through from the daemon's environment.
    pub env_names: Vec<String>,
}

/// A role's child.
#[must_use]
pub fn plan_role(agent: &AgentConfig) -> AgentPlan {
    AgentPlan {
        argv: agent.command.iter().chain(&agent.args).cloned().collect(),
        stdin: Stdin::Prompt,
        env_names: agent.env.clone(),
    }
}

/// A command stage's child.
#[must_use]
pub fn plan_shell(command: &str) -> AgentPlan {
    AgentPlan {
        argv: ["sh", "-c", command].map(str::to_owned).to_vec(),
        stdin: Stdin::Null,
        env_names: Vec::new(),
    }
}

/// What a role said: a last non-empty line `verdict: …` decides for a child that exited 0; without one
/// exit 0 is a pass. A child that did not succeed cannot pass, whatever it printed (P7).
#[must_use]
pub fn verdict_of(
    outcome: Outcome,
    exit_code: Option<i32>,
    detail: &str,
    stdout_tail: &[u8],
) -> Verdict {
    let said = last_line(stdout_tail).and_then(|line| parse_verdict(&line));
    match (outcome, said) {
        (Outcome::Succeeded, Some(verdict)) => verdict,
        (Outcome::Succeeded, None) => Verdict::Pass,
        (Outcome::Failed, Some(Verdict::Blocked(reason))) => Verdict::Blocked(reason),
        (Outcome::Failed, Some(Verdict::Fail(reason))) => Verdict::Fail(reason),
        (Outcome::Failed, _) => match exit_code {
            Some(code) => Verdict::Fail(format!("exit code {code}")),
            None => Verdict::Fail("failed".to_owned()),
        },
        (other, _) if detail.is_empty() => Verdict::Fail(other.to_string().replace('_', " ")),
        (other, _) => Verdict::Fail(format!("{}: {detail}", other.to_string().replace('_', " "))),
    }
}

fn last_line(tail: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(tail);
    text.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .map(str::to_owned)
}

/// The longest reason kept, in characters: it goes into facts and tables.
const REASON_CHARS_MAX: usize = 300;

fn parse_verdict(line: &str) -> Option<Verdict> {
    let (key, rest) = line.split_once(':')?;
    if !key.trim().eq_ignore_ascii_case("verdict") {
        return None;
    }
    let rest = rest.trim();
    let (word, reason) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let reason = || {
        let text: String = mask_secrets(reason.trim())
            .chars()
            .take(REASON_CHARS_MAX)
            .collect();
        if text.is_empty() {
            "no reason given".to_owned()
        } else {
            text
        }
    };
    match word.to_ascii_lowercase().as_str() {
        "pass" => Some(Verdict::Pass),
        "fail" => Some(Verdict::Fail(reason())),
        "blocked" => Some(Verdict::Blocked(reason())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_verdict() {
        let check = |out: &str, expected: Verdict| {
            assert_eq!(
                verdict_of(Outcome::Succeeded, Some(0), "", out.as_bytes()),
                expected,
                "{out:?}"
            );
        };
        check("", Verdict::Pass);
        check("all good\n", Verdict::Pass);
        check("verdict: pass\n\n  \n", Verdict::Pass);
        check("verdict: fail too long\n", Verdict::Fail("too long".into()));
        check(
            "Verdict: BLOCKED need a key",
            Verdict::Blocked("need a key".into()),
        );
        check("verdict: fail", Verdict::Fail("no reason given".into()));
        check("verdict: fail x\nmore\n", Verdict::Pass);
        check("verdict: perhaps\n", Verdict::Pass);
    }

    #[test]
    fn p7_a_lying_exit_code_or_line_never_passes() {
        let pass = b"verdict: pass\n";
        assert_eq!(
            verdict_of(Outcome::Failed, Some(3), "", pass),
            Verdict::Fail("exit code 3".into())
        );
        assert_eq!(
            verdict_of(Outcome::TimedOut, None, "", pass),
            Verdict::Fail("timed out".into())
        );
        assert_eq!(
            verdict_of(Outcome::Failed, Some(1), "", b"verdict: blocked no login"),
            Verdict::Blocked("no login".into())
        );
    }
}

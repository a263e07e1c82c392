//! `doctor`: runs the checks, repairs what is safe, prints. Changes nothing without `--fix`.

use super::context::Context;
use super::doctor_checks as checks;
use super::failure::Outcome;
use super::output;
use clap::Args;
use serde::Serialize;
use std::io::Write as _;

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Repair what can be repaired without losing anything
    #[arg(long)]
    pub(super) fix: bool,
}

/// How a check went, worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Health {
    Ok,
    Fixed,
    Warning,
    Problem,
}

/// One line of the report.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) health: Health,
    /// What was found, with the way out.
    pub(super) detail: String,
}

/// The report so far.
#[derive(Debug, Default)]
pub(super) struct Report(pub(super) Vec<Finding>);

impl Report {
    pub(super) fn add(&mut self, check: &'static str, health: Health, detail: impl Into<String>) {
        self.0.push(Finding {
            check,
            health,
            detail: detail.into(),
        });
    }

    pub(super) fn ok(&mut self, check: &'static str, detail: impl Into<String>) {
        self.add(check, Health::Ok, detail);
    }

    pub(super) fn warning(&mut self, check: &'static str, detail: impl Into<String>) {
        self.add(check, Health::Warning, detail);
    }

    pub(super) fn problem(&mut self, check: &'static str, detail: impl Into<String>) {
        self.add(check, Health::Problem, detail);
    }

    fn worst(&self) -> Health {
        self.0
            .iter()
            .map(|finding| finding.health)
            .max()
            .unwrap_or(Health::Ok)
    }
}

/// Checks everything; exit code 1 when there is a problem.
pub(super) fn doctor(context: &Context, args: &DoctorArgs) -> Outcome {
    let mut report = Report::default();
    checks::git(&mut report, &context.root);
    let loaded = checks::configuration(&mut report, context);
    let state_dir = context.state_dir();
    checks::state_dir(&mut report, &state_dir);
    checks::daemon(&mut report, &state_dir, args.fix);
    checks::ledger(&mut report, &state_dir);
    checks::markers(&mut report, &state_dir);
    if let Some(config) = &loaded {
        checks::agents(&mut report, config);
        checks::tasks(&mut report, context, config);
        checks::machine(&mut report, config);
        checks::worktrees(&mut report, config);
    }
    checks::leases(&mut report, &state_dir, args.fix);
    checks::orphans(&mut report, &state_dir, args.fix);
    let code = u8::from(report.worst() == Health::Problem);
    if context.json {
        output::json(&report.0)?;
        return Ok(code);
    }
    let mut out = output::stdout();
    for finding in &report.0 {
        let word = match finding.health {
            Health::Ok => "ok",
            Health::Fixed => "fixed",
            Health::Warning => "warning",
            Health::Problem => "PROBLEM",
        };
        for (at, line) in finding.detail.lines().enumerate() {
            let (word, check) = if at == 0 {
                (word, finding.check)
            } else {
                ("", "")
            };
            writeln!(out, "{word:<8} {check:<10} {}", output::printable(line))?;
        }
    }
    out.flush()?;
    Ok(code)
}

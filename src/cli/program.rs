//! Parses, sends to the command, turns the outcome into an exit code.

use super::args::{Cli, Command};
use super::context::Context;
use super::failure::{Failure, Outcome};
use super::output::say;
use super::{add, control, doctor, init, lease, ledger, logs, look, queue, run, settings};
use clap::{CommandFactory as _, Parser as _};
use std::process::ExitCode;

/// Runs the program: the arguments of this process, its standard streams, its exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and end with 0, usage errors with 2.
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            // A reader that went away is no reason for another code.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    if let Command::Runner(args) = &cli.command {
        return crate::runner::serve(&args.state, &args.name);
    }
    match dispatch(cli) {
        Ok(code) => ExitCode::from(code),
        Err(Failure { code, message }) => {
            if !message.is_empty() {
                say(message);
            }
            ExitCode::from(code)
        }
    }
}

fn dispatch(cli: Cli) -> Outcome {
    // These need no project.
    match cli.command {
        Command::Completions { shell } => return completions(shell),
        Command::Config(settings::ConfigCommand::Schema) => return settings::schema(),
        _ => {}
    }
    let context = Context::new(&cli.global)?;
    match cli.command {
        Command::Init(args) => init::init(&context, &args),
        Command::Start(args) => control::start(context, &args),
        Command::Stop(args) => control::stop(&context, &args),
        Command::Pause => control::mark(&context, control::Mark::Pause),
        Command::Resume => control::mark(&context, control::Mark::Resume),
        Command::Estop => control::mark(&context, control::Mark::Estop),
        Command::Thaw => control::mark(&context, control::Mark::Thaw),
        Command::Status(args) => look::status(&context, &args),
        Command::Why(args) => look::why(&context, &args),
        Command::List(args) => look::list(&context, &args),
        Command::Show(args) => look::show(&context, &args),
        Command::Logs(args) => logs::logs(&context, &args),
        Command::Add(args) => add::add(&context, &args),
        Command::Retry(args) => queue::retry(&context, &args),
        Command::Cancel(args) => queue::cancel(&context, &args),
        Command::Lease(command) => lease::lease(&context, command),
        Command::Run(args) => run::run(&context, &args),
        Command::Ledger(args) => ledger::ledger(&context, &args),
        Command::Doctor(args) => doctor::doctor(&context, &args),
        Command::Config(settings::ConfigCommand::Show) => settings::show(&context),
        Command::Config(settings::ConfigCommand::Schema)
        | Command::Completions { .. }
        | Command::Runner(_) => Ok(0),
    }
}

fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "flockd", &mut script);
    let mut out = super::output::stdout();
    std::io::Write::write_all(&mut out, &script)?;
    std::io::Write::flush(&mut out)?;
    Ok(0)
}

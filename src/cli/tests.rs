//! The grammar: every command parses, usage errors end with 2, the help is what people were promised.

use super::args::{Cli, Command};
use super::control::StartArgs;
use clap::{CommandFactory as _, Parser as _};

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("flockd").chain(line.split_whitespace()))
}

#[test]
fn the_grammar_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_parses() {
    for line in [
        "init",
        "start",
        "start --detach -x 4 -y 2 -z 3 -m 8 --max-completed 5 --max-attempts 9 --infinite --dry-run",
        "start -m 0 -x -1 --max-completed infinite",
        "stop",
        "stop --now",
        "pause",
        "resume",
        "estop",
        "thaw",
        "status --json",
        "--json status",
        "-C /tmp --state-dir /tmp/s status -v",
        "why T-0001 --json",
        "list --state blocked",
        "show T-0001",
        "logs T-0001 -f --stderr",
        "logs --run 01J8ZQ",
        "add Title --claim src/ --claim docs --after T-1 --priority -2 --body -",
        "add --from tasks.jsonl",
        "retry T-1",
        "cancel T-1 T-2",
        "lease claim --task T-1 src/a.rs docs/ --ttl 30m",
        "lease claim --task T-1 src/a.rs -- make test",
        "lease release 01J8ZQ",
        "lease list --json",
        "run -- cargo test --all",
        "run --weight 2 --timeout 90s -- sleep 1",
        "run --lines -",
        "ledger --follow --since 7",
        "ledger verify",
        "ledger export",
        "doctor --fix",
        "config show --json",
        "config schema",
        "completions bash",
        "runner --state /s --name 3",
        "status --set loop.tasks=3",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn usage_errors_end_with_2() {
    for line in [
        "",
        "nonsense",
        "why",
        "why ../x",
        "add",
        "add T --from x",
        "run",
        "run --weight 0 -- true",
        "run --lines x -- true",
        "lease claim --task T-1",
        "lease claim src",
        "lease claim --task T-1 src --ttl soon",
        "ledger --since x",
        "status --nope",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
    for line in ["--help", "--version", "start --help"] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 0, "{line}");
    }
}

#[test]
fn start_flags_become_values_with_their_names() {
    let Command::Start(args) = parse("start -m 0 -x 3 --infinite").unwrap().command else {
        unreachable!("start parses as start");
    };
    let flags: Vec<String> = StartArgs::flags(&args)
        .into_iter()
        .map(|f| format!("{} {}={}", f.flag, f.key, f.value))
        .collect();
    assert_eq!(
        flags,
        [
            "-x loop.tasks=3",
            "-m loop.global_concurrency=0",
            "--infinite loop.infinite=true"
        ]
    );
}

#[test]
fn help() {
    insta::assert_snapshot!(Cli::command().term_width(100).render_help());
    insta::assert_snapshot!(
        "help_start",
        Cli::command()
            .find_subcommand_mut("start")
            .unwrap()
            .render_help()
    );
}

#[test]
fn completions_come_for_every_shell() {
    use clap::ValueEnum as _;
    for shell in clap_complete::Shell::value_variants() {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut Cli::command(), "flockd", &mut script);
        assert!(
            String::from_utf8(script).unwrap().contains("estop"),
            "{shell}"
        );
    }
}

#[test]
fn tables_do_not_obey_their_content() {
    let mut out = Vec::new();
    let rows = [vec!["a".to_owned(), "\u{1b}[2Jx\ny".to_owned()]];
    super::output::table(&mut out, &["A", "LONG"], &rows).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text, "A  LONG\na  \u{fffd}[2Jx\u{fffd}y\n");
}

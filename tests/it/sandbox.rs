//! The sandbox that other tests stand in is what they believe it is.

use crate::common::Sandbox;

#[test]
fn sandbox_is_a_repository_of_its_own() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_eq!(sandbox.git(&["log", "--format=%an %s"]), "Sandbox Begin\n");
    assert!(!sandbox.state().exists());
}

#[test]
fn sandbox_writes_a_configuration_and_tasks() {
    let sandbox = Sandbox::new();
    sandbox.configure_fake_agent("[loop]\ntasks = 1\n");
    sandbox.task(
        "one",
        "title = \"One\"\nclaims = [\"a\"]",
        "agent: write a text",
    );
    let settings: toml::Table = sandbox.read("flockd.toml").parse().unwrap();
    assert_eq!(settings["loop"]["tasks"].as_integer(), Some(1));
    assert_eq!(settings["agents"]["fake"]["kind"].as_str(), Some("command"));
    assert!(
        sandbox
            .read("tasks/one.md")
            .starts_with("+++\ntitle = \"One\"\n")
    );
    assert!(sandbox.flockd(&["--help"]).status.success());
}

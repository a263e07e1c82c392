//! Attacks by agents: what they do to the repository, to their runner and to the loop.

use crate::common::{Looping, Sandbox};

#[test]
fn p3_work_done_on_another_branch_is_where_the_loop_says() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("");
    sandbox.git(&["branch", "theirs"]);
    let header = "title = \"One\"\nclaims = [\"one\"]";
    sandbox.task("one", header, "git checkout -q theirs\necho 1 > one");
    let header = "title = \"Two\"\nclaims = [\"two\"]";
    sandbox.task(
        "two",
        header,
        "echo 2 > two\ngit add two\ngit -c user.name=A -c user.email=a@example.org commit -qm two\ngit branch backup",
    );
    let before = sandbox.git(&["rev-parse", "theirs"]);
    assert_eq!(Looping::start(&sandbox, &[]).ended().code, Some(0));
    assert_eq!(sandbox.git(&["show", "flockd/one.1:one"]), "1\n");
    assert_eq!(sandbox.git(&["show", "flockd/two.1:two"]), "2\n");
    assert_eq!(
        sandbox.git(&["rev-parse", "theirs"]),
        before,
        "a branch of the user's gets no commit of ours"
    );
}
